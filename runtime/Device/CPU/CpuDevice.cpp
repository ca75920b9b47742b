// The CPU device: arenas are anonymous mappings of exactly the planned size,
// and commands go to the file of their kind.

#include "Device/CPU/CpuDevice.h"
#include "Base/Populate.h"
#include "Base/SystemError.h"
#include "Device/CPU/Gemm/Gemm.h"
#include "Device/ThreadStreams.h"
#include "accel-rt/FeatureFormat.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace accel::rt {

namespace {

/// Arenas of at least this size start on its multiples, so that the kernel can
/// back them by huge pages.
constexpr uint64_t kHugePage = 2 << 20;

class CpuDevice : public Device {
public:
  CpuDevice(ThreadPool &pool, std::atomic<uint64_t> *populated)
      : pool(pool), populated(populated) {}
  ~CpuDevice() override {
    for (const Mapping &mapping : mappings)
      munmap(mapping.address, mapping.bytes);
  }
  Status load(const ExecutableFile &file, const char *library) {
    return kernels.load(file, library);
  }

  const char *name() const override { return "cpu"; }

  Status allocate(const ArenaPlan &arena, Address &address) override {
    uint64_t bytes = static_cast<uint64_t>(arena.bytes);
    uint64_t alignment = std::max<uint64_t>(arena.alignment, 4096);
    if (bytes >= kHugePage)
      alignment = std::max(alignment, kHugePage);
    // Address space is free: what surrounds the aligned range is given back.
    void *base = mmap(nullptr, bytes + alignment, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
      return Status::error("cannot allocate the " + std::to_string(bytes) +
                           " bytes of space " + inQuotes(arena.space) + ": " +
                           systemError(errno));
    mappings.push_back({base, bytes + alignment});
    uint64_t start = reinterpret_cast<uint64_t>(base);
    uint64_t aligned = (start + alignment - 1) / alignment * alignment;
    address = {aligned};
    if (bytes >= kHugePage)
      (void)madvise(find(address), bytes, MADV_HUGEPAGE);
    ACCEL_RT_RETURN_IF_ERROR(populate(find(address), bytes, populated));
    allocated += bytes;
    return Status();
  }
  uint64_t allocatedBytes() const override { return allocated; }

  bool isHostMemory(Address) const override { return true; }
  Status share(void *host, uint64_t, Address &address) override {
    address = {reinterpret_cast<uint64_t>(host)};
    return Status();
  }
  Status upload(Address target, const void *source, const Rows &rows) override {
    uploadRows(find(target), source, rows);
    return Status();
  }
  Status download(void *target, Address source, const Rows &rows) override {
    downloadRows(target, find(source), rows);
    return Status();
  }
  Status fill(Address target, int byte, const Rows &rows) override {
    fillRows(find(target), byte, rows);
    return Status();
  }

  Status prepare(const Command &command, std::unique_ptr<Task> &task) override {
    if (auto *gemm = std::get_if<GemmCommand>(&command.what))
      return cpu::prepareGemm(*gemm, pool, task);
    if (auto *grouped = std::get_if<GroupedGemmCommand>(&command.what))
      return cpu::prepareGroupedGemm(*grouped, pool, task);
    if (auto *grad = std::get_if<GroupedGemmGradCommand>(&command.what))
      return cpu::prepareGroupedGemmGrad(*grad, pool, task);
    if (auto *conv = std::get_if<ConvCommand>(&command.what))
      return cpu::prepareConv(*conv, pool, task);
    if (auto *deal = std::get_if<DealRowsCommand>(&command.what))
      return cpu::prepareDealRows(*deal, task);
    if (auto *pack = std::get_if<PackCommand>(&command.what))
      return cpu::preparePack(*pack, task);
    if (auto *attention = std::get_if<AttentionCommand>(&command.what))
      return cpu::prepareAttention(*attention, pool, kernels, task);
    if (auto *grad = std::get_if<AttentionGradCommand>(&command.what))
      return cpu::prepareAttentionGrad(*grad, pool, kernels, task);
    if (auto *kernel = std::get_if<KernelCommand>(&command.what))
      return cpu::prepareKernel(*kernel, pool, kernels, task);
    if (auto *copy = std::get_if<CopyCommand>(&command.what))
      return cpu::prepareCopy(*copy, pool, task);
    if (auto *fill = std::get_if<FillCommand>(&command.what))
      return cpu::prepareFill(*fill, task);
    return Status::error(std::string("the device 'cpu' has no command ") +
                         inQuotes(commandKind(command)));
  }

  bool capturesHostTasks() const override { return true; }
  Status makeStreams(const StreamPlan &plan, StreamWatcher &watcher,
                     std::unique_ptr<Streams> &streams) override {
    return makeThreadStreams(plan, pool.spinLimit(), watcher, streams);
  }

private:
  struct Mapping {
    void *address;
    uint64_t bytes;
  };
  ThreadPool &pool;
  std::atomic<uint64_t> *populated;
  cpu::KernelLibrary kernels;
  std::vector<Mapping> mappings;
  uint64_t allocated = 0;
};

} // namespace

/// All but what the parent has mapped for the ranks of the machine, and files.
bool cpu::isOfProcess(const std::string &space) {
  return space != "shared" && space != kStorageSpace;
}

Status cpu::makeDevice(const ExecutableFile &file, ThreadPool &pool,
                       std::atomic<uint64_t> *populated,
                       std::unique_ptr<Device> &device) {
  return makeDeviceOf(kLibrarySection, file, pool, populated, device);
}

Status cpu::makeDeviceOf(const char *library, const ExecutableFile &file,
                         ThreadPool &pool, std::atomic<uint64_t> *populated,
                         std::unique_ptr<Device> &device) {
  const Executable &plan = file.plan();
  // Beside another device's code there is the CPU's of the machine that
  // compiles.
  bool portable =
      isMadeFor(plan, kName) && plan.target.find(':') != std::string::npos;
  if (portable) {
    const std::vector<std::string> needs = featuresOf(plan, kName);
    bool avx512 =
        std::find(needs.begin(), needs.end(), "avx512f") != needs.end();
    ACCEL_RT_RETURN_IF_ERROR(cpu::limitInstructions(avx512));
  }
  auto made = std::make_unique<CpuDevice>(pool, populated);
  ACCEL_RT_RETURN_IF_ERROR(made->load(file, library));
  device = std::move(made);
  return Status();
}

} // namespace accel::rt
