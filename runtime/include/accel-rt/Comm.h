// What moves data between ranks, beside the control plane by which they come to
// terms (runtime/Control/ControlPlane.h). `host` is ranks that are processes of
// one machine over shared memory, and its tasks are the host's; one whose tasks
// a device enqueues (NCCL) can stand beside it.

#ifndef ACCEL_RT_COMM_H
#define ACCEL_RT_COMM_H

#include "accel-rt/Streams.h"

namespace accel::rt {

class Comm {
public:
  virtual ~Comm() = default;
  /// The arena that all ranks map: this rank's piece of it.
  virtual Status allocate(const ArenaPlan &arena, Address &address) = 0;

  /// Makes the task of a collective, send, recv or group whose views are at
  /// `work.places`, and says whose it is: `work.kind` is Device for one that
  /// the device's streams enqueue as they do the device's own commands, Host
  /// for a HostTask; `work.isCapturable` whether it may stand in a capture.
  /// Errors: a kind, type or place of a view that it does not have.
  virtual Status prepare(const Program &program, const Command &command,
                         Work &work) = 0;
};

} // namespace accel::rt

#endif // ACCEL_RT_COMM_H
