// What executes commands: the CPU, a GPU's back end (a plug-in that is loaded
// when asked), or the Null device that only records them. A command is prepared
// once, at load, into a Task; running a Task allocates nothing.

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

/// The CPU. `file` holds the kernels; its section cpu.so is loaded from memory
/// (it may be absent if no command needs a kernel). `pool` must outlive it.
/// `populated` (may be null) grows with the bytes of the arenas that have got
/// memory: for large ones that takes seconds.
Status makeCpuDevice(const ExecutableFile &file, ThreadPool &pool,
                     std::unique_ptr<Device> &device,
                     std::atomic<uint64_t> *populated = nullptr);

/// A command as the Null device saw it.
struct RecordedCommand {
  const Command *command;
  std::vector<void *> addresses;
  int64_t microBatch;
};
/// Records commands into `log` and touches no memory but the arenas it hands
/// out: for tests and dry runs. (The log allocates.)
std::unique_ptr<Device> makeNullDevice(std::vector<RecordedCommand> &log);

} // namespace accel::rt

#endif // ACCEL_RT_DEVICE_H
