// Communication between ranks that are processes of one machine: everybody
// reads its peers' memory directly (reference: no copy, 2-13 times faster than
// MPI on one host). Sums are made in the order of the group, whatever the
// timing.

#ifndef ACCEL_RUNTIME_COMM_HOSTCOMM_H
#define ACCEL_RUNTIME_COMM_HOSTCOMM_H

#include "Base/ThreadPool.h"
#include "Comm/Carrier.h"
#include "accel-rt/Comm.h"

namespace accel::rt {

/// The part of the machine that a rank sees. All must outlive the tasks.
struct HostRank {
  HostMemory &memory;
  ThreadPool &pool;
  Coordinates coordinates;
  int64_t rank;
  /// False: ranks meet, and nothing is moved between them.
  bool moves;
  Memory &device;        ///< What other arenas are in.
  ControlPlane &control; ///< Of signs of life, and of the end.
  int spin;              ///< Looks of a wait before it sleeps.
  /// What takes messages to other machines, by number of the stream: what
  /// collectives move, and what sends and receives do. Empty where there are
  /// none.
  std::vector<std::unique_ptr<Carrier>> carriers = {}, mailCarriers = {};
  Address sharedAt{}; ///< Where this rank's shared arena is in `device`.

  /// Of the command that is prepared: its buffers in other arenas that the host
  /// reaches, by number.
  std::vector<int64_t> reached = {};
  bool isReached(const View &view) const {
    return std::find(reached.begin(), reached.end(), view.buffer) !=
           reached.end();
  }

  /// Where the host finds a view of the shared arena.
  char *findShared(Address address) const {
    return memory.shared(rank) + (address - sharedAt);
  }
};

/// The bytes of a view for the host: the view itself where the host reaches it,
/// and else a copy, which is memory beside the plan: plans for such a device
/// put what ranks exchange in `shared`.
class HostView {
public:
  HostView(const View &view, bool isShared, const HostRank &self);
  /// The first element, with the view's strides.
  char *find(Address address);
  /// Copies all of the view from its arena, or into it.
  Status fetch(Address address);
  Status store(Address address);

private:
  const HostRank &self;
  PairLayout layout;
  int64_t bytes;
  bool isShared;
  std::vector<char> copy; ///< Empty: the host reaches the view.
};

/// A collective's group: who takes part, where their memory is.
struct Group {
  Group(const HostRank &self, const std::vector<std::string> &axes,
        const std::string &stream);
  std::vector<int64_t> ranks; ///< In the order of the group.
  int64_t index = 0;          ///< This rank's place in it.
  std::vector<int64_t> here;  ///< The places of ranks of this machine.
  bool isSpread = false;      ///< Over machines.
  BarrierCell *barrier = nullptr;
};

/// Makes the task of a collective.
Status prepareCollective(const Program &program, const Command &command,
                         HostRank &self, std::unique_ptr<HostTask> &task);

/// Makes the task of a send, recv or group.
Status prepareMail(const Program &program, const Command &command,
                   HostRank &self, std::unique_ptr<HostTask> &task);

/// `keeperBell` is that of the process that keeps this rank, `lanes` how
/// collectives reach other machines without it; null where there are none.
/// Where it does not move anything, its arena has an address and no memory. The
/// other arenas are those of `device`.
std::unique_ptr<Comm> makeHostComm(HostMemory &memory, ThreadPool &pool,
                                   const Executable &executable,
                                   ControlPlane &control, bool moves,
                                   Memory &device, Word *keeperBell = nullptr,
                                   Lanes *lanes = nullptr);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_COMM_HOSTCOMM_H
