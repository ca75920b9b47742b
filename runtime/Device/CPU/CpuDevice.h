// The CPU device's parts: its memory, its kernels, and the tasks of each kind
// of command (one file each).

#ifndef ACCEL_RUNTIME_DEVICE_CPU_CPUDEVICE_H
#define ACCEL_RUNTIME_DEVICE_CPU_CPUDEVICE_H

#include "Core/Layout.h"
#include "Core/ThreadPool.h"
#include "Device/CPU/Kernel.h"
#include "accel-rt/Device.h"

namespace accel::rt::cpu {

/// Backs the pages of an arena by memory now, so that the first run is like the
/// others and too little memory is an error at load. It is done in pieces,
/// whose bytes are added to `counter` (may be null): a large arena takes as
/// long as a hang.
Status populate(void *address, uint64_t bytes, std::atomic<uint64_t> *counter);
inline constexpr uint64_t kPopulatedAtOnce = 64 << 20;

/// The shared library of generated kernels, loaded from memory.
class KernelLibrary {
public:
  ~KernelLibrary();
  /// Loads the library of `file`, if there is one.
  Status load(const ExecutableFile &file);
  /// Errors: no kernel of that name.
  Status find(const std::string &name, KernelFunction &kernel) const;

private:
  void *handle = nullptr;
};

Status prepareGemm(const GemmCommand &command, ThreadPool &pool,
                   std::unique_ptr<Task> &task);
Status preparePack(const PackCommand &command, std::unique_ptr<Task> &task);
Status prepareAttention(const AttentionCommand &command, ThreadPool &pool,
                        const KernelLibrary &kernels,
                        std::unique_ptr<Task> &task);
Status prepareAttentionGrad(const AttentionGradCommand &command,
                            ThreadPool &pool, const KernelLibrary &kernels,
                            std::unique_ptr<Task> &task);
Status prepareKernel(const KernelCommand &command, ThreadPool &pool,
                     const KernelLibrary &kernels, std::unique_ptr<Task> &task);
Status prepareCopy(const CopyCommand &command, ThreadPool &pool,
                   std::unique_ptr<Task> &task);
Status prepareFill(const FillCommand &command, std::unique_ptr<Task> &task);

} // namespace accel::rt::cpu

#endif // ACCEL_RUNTIME_DEVICE_CPU_CPUDEVICE_H
