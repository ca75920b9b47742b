// Connections of TCP between ranks of different machines, made by the ranks
// themselves: what collectives move goes on them, so that no other process has
// to be woken for it. The network proper stays for all else, and for machines
// that do not reach each other so, or have a better network than TCP.

#ifndef ACCEL_RUNTIME_NETWORK_LANES_H
#define ACCEL_RUNTIME_NETWORK_LANES_H

#include "Network/Machines.h"

#include <mutex>

namespace accel::rt {

class Lanes {
public:
  /// All processes together, before ranks are forked. Null where a machine does
  /// not reach another, has a network of its own kind (InfiniBand, Slingshot),
  /// or $ACCEL_MESSAGES is 'mpi'; `why` is set. `run` is a number that no other
  /// run has. Errors: the network's, another value of $ACCEL_MESSAGES.
  static Status join(Machines &machines, uint64_t run,
                     std::unique_ptr<Lanes> &lanes, std::string &why);
  ~Lanes();
  Lanes() = default;
  Lanes(const Lanes &) = delete;
  Lanes &operator=(const Lanes &) = delete;

  /// Makes a connection on which this rank sends to another. They are told
  /// apart by numbers. Any thread.
  Status open(int64_t to, uint32_t number, int &socket);
  /// The one on which another sends to this rank; -1: it has not come yet. Any
  /// thread, allocates nothing.
  int take(int64_t from, uint32_t number);
  /// What changes when one comes.
  int listener() const { return door; }

private:
  struct Hello {
    uint64_t run;
    int64_t from;
    uint32_t number;
    uint32_t unused;
  };
  struct Waiting {
    Hello hello;
    int socket;
  };
  Status listenHere();
  void acceptAll();
  std::string findMissing(Machines &machines, Status &status);

  int door = -1;
  uint64_t run = 0;
  int64_t self = 0;
  std::vector<uint32_t> addressOf; ///< Of each rank, as IPv4 has it.
  std::vector<uint16_t> portOf;
  std::mutex mutex;             ///< Of `waiting`.
  std::vector<Waiting> waiting; ///< Has room for all that will come.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_NETWORK_LANES_H
