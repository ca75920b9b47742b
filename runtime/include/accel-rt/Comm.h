// What moves data between ranks, beside the control plane by which they come to
// terms (runtime/Control/ControlPlane.h). `host` is ranks that are processes of
// one machine over shared memory; others (MPI, NCCL) will stand beside it.

#ifndef ACCEL_RT_COMM_H
#define ACCEL_RT_COMM_H

#include "accel-rt/Streams.h"

namespace accel::rt {

class Comm {
public:
  virtual ~Comm() = default;
  /// The arena that all ranks map: this rank's piece of it.
  virtual Status allocate(const ArenaPlan &arena, Address &address) = 0;

  /// Makes a task of a collective, send, recv or group. Errors: a kind, type or
  /// place of a view that it does not have.
  virtual Status prepare(const Program &program, const Command &command,
                         std::unique_ptr<HostTask> &task) = 0;
};

} // namespace accel::rt

#endif // ACCEL_RT_COMM_H
