// What executes commands; runtime/Device has a folder for each, and a table of
// them. A command is prepared once, at load, into a Task; running a Task
// allocates nothing.

#ifndef ACCEL_RT_DEVICE_H
#define ACCEL_RT_DEVICE_H

#include "accel-rt/PlanFormat.h"

#include <atomic>

namespace accel::rt {

class ThreadPool;

/// A prepared command.
class Task {
public:
  virtual ~Task() = default;
  /// Runs the command on the views at `addresses`, in the order in which
  /// Format/Views.h visits them. `microBatch` is that of the run. Returns when
  /// the views that it writes may be read.
  virtual Status run(void *const *addresses, int64_t microBatch) = 0;
};

class Device {
public:
  virtual ~Device() = default;
  virtual const char *name() const = 0;

  /// Allocates an arena of exactly `arena.bytes` bytes, aligned as it says; the
  /// device frees it when it ends.
  virtual Status allocate(const ArenaPlan &arena, void **address) = 0;
  /// Bytes that allocate() has handed out.
  virtual uint64_t allocatedBytes() const = 0;

  /// Makes a task of a gemm, attention, kernel, copy, fill or pack. Errors: a
  /// kind, type or form that the device does not have.
  virtual Status prepare(const Command &command,
                         std::unique_ptr<Task> &task) = 0;

  /// Copies between host memory and an arena.
  virtual Status upload(void *device, const void *host, uint64_t bytes) = 0;
  virtual Status download(void *host, const void *device, uint64_t bytes) = 0;
};

} // namespace accel::rt

#endif // ACCEL_RT_DEVICE_H
