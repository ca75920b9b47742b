// The CPU device's parts: its memory, its kernels, and the tasks of each kind
// of command (one file each).

#ifndef ACCEL_RUNTIME_DEVICE_CPU_CPUDEVICE_H
#define ACCEL_RUNTIME_DEVICE_CPU_CPUDEVICE_H

#include "Base/ThreadPool.h"
#include "Device/CPU/Kernel.h"
#include "Format/Layout.h"
#include "accel-rt/Device.h"

namespace accel::rt::cpu {

/// Of engines and files.
inline constexpr const char *kName = "cpu";

/// The device. Its kernels are loaded from memory; they may be absent if no
/// command needs one. `populated` may be null.
Status makeDevice(const ExecutableFile &file, ThreadPool &pool,
                  std::atomic<uint64_t> *populated,
                  std::unique_ptr<Device> &device);

/// The same with the kernels of another section of code: a device of tests that
/// computes as the CPU does.
Status makeDeviceOf(const char *library, const ExecutableFile &file,
                    ThreadPool &pool, std::atomic<uint64_t> *populated,
                    std::unique_ptr<Device> &device);

/// Errors: features (names as in /proc/cpuinfo) that the code in `path` needs
/// and this machine lacks.
bool isOfProcess(const std::string &space);
Status checkMachine(const Executable &plan, const std::string &path);

/// Puts into `missing` those among `features` that this machine lacks. Errors:
/// it does not say.
Status findMissingFeatures(const std::vector<std::string> &features,
                           std::vector<std::string> &missing);

/// Where a view is: every address of this device is one of the host's.
inline void *at(Address address) {
  return reinterpret_cast<void *>(address.value);
}

/// The shared library of generated kernels, loaded from memory.
class KernelLibrary {
public:
  KernelLibrary() = default;
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary &) = delete;
  KernelLibrary &operator=(const KernelLibrary &) = delete;
  /// Loads the library of `file` that is called so, if there is one.
  Status load(const ExecutableFile &file, const char *name);
  /// Errors: no kernel of that name.
  Status find(const std::string &name, KernelFunction &kernel) const;

private:
  /// Open as long as the library is, since the loader knows it by that path: it
  /// would take the next one that is loaded for the same.
  int fd = -1;
  void *handle = nullptr;
};

Status prepareGemm(const GemmCommand &command, ThreadPool &pool,
                   std::unique_ptr<Task> &task);
Status prepareGroupedGemm(const GroupedGemmCommand &command, ThreadPool &pool,
                          std::unique_ptr<Task> &task);
Status prepareGroupedGemmGrad(const GroupedGemmGradCommand &command,
                              ThreadPool &pool, std::unique_ptr<Task> &task);
Status prepareConv(const ConvCommand &command, ThreadPool &pool,
                   std::unique_ptr<Task> &task);
Status prepareDealRows(const DealRowsCommand &command,
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
