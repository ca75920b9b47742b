// Connections of TCP between ranks of different machines, made by the ranks
// themselves: what collectives move goes on them, so that no other process has
// to be woken for it. The network proper stays for all else, and for machines
// that do not reach each other so, or have a better network than TCP.
//
// First the machines' leaders find out which addresses lead to each other; then
// each rank has ports at those by which others reach its machine, and listens
// there from when it begins until its lanes stand. Each end of each connection
// proves that it is of the run (Greeting.h).

#ifndef ACCEL_RUNTIME_NETWORK_LANES_H
#define ACCEL_RUNTIME_NETWORK_LANES_H

#include "Network/Greeter.h"
#include "Network/Machines.h"
#include "Network/Routes.h"

namespace accel::rt {

class Lanes {
public:
  /// All processes together, before ranks are forked. Null where a machine does
  /// not reach another, has a network of its own kind (InfiniBand, Slingshot),
  /// or $ACCEL_MESSAGES is 'mpi'; `why` is set. Errors: the network's, another
  /// value of $ACCEL_MESSAGES.
  static Status join(Machines &machines, std::unique_ptr<Lanes> &lanes,
                     std::string &why);
  Lanes() = default;
  Lanes(const Lanes &) = delete;
  Lanes &operator=(const Lanes &) = delete;

  /// In the rank, before all else that takes time: begins to listen. Lanes
  /// between two ranks are told apart by numbers below `numbers`.
  Status serve(uint32_t numbers);
  /// Wants a connection on which this rank sends to another, or another to it.
  void want(bool sends, int64_t peer, uint32_t number);
  /// Waits until all that are wanted stand, and closes the doors. Errors: one
  /// cannot be made; what `look`, which is asked often, says.
  Status stand(const std::function<Status()> &look);
  /// One of them, which stays ours. Any thread, allocates nothing.
  int socketOf(bool sends, int64_t peer, uint32_t number) const;

private:
  using Key = std::pair<int64_t, uint32_t>; ///< The other rank, a number.
  Status takePorts(Machines &machines, const Routes &routes, std::string &why);

  Secret secret;
  int64_t self = 0;
  std::vector<bool> isElsewhere; ///< By rank: on another machine.
  std::vector<Endpoint> placeOf; ///< By rank: where it listens for us.
  std::vector<Socket> doors;
  std::unique_ptr<Greeter> greeter;
  std::map<Key, size_t> attempts; ///< Lanes on which this rank sends.
  std::vector<Key> expected;      ///< Those on which others do.
  Greeter::Results made;          ///< Once all stand.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_NETWORK_LANES_H
