// The device itself: the CPU behind a wall, and the laws before it.

#include "ModelDevice.h"

#include "../Unit/Runtime/WalledDevice.h"
#include "ModelSection.h"
#include "ModelStreams.h"
#include "accel-rt/FeatureFormat.h"

#include <cstdio>
#include <cstdlib>

namespace accel::rt::model {
namespace {
/// As Executor fills what nobody may read.
constexpr int kPoison = 0xff;
} // namespace

Status ModelDevice::allocate(const ArenaPlan &arena, Address &address) {
  ACCEL_RT_RETURN_IF_ERROR(inner->allocate(arena, address));
  ACCEL_RT_RETURN_IF_ERROR(memory.add(arena, address));
  return inner->fill(address, kPoison, {static_cast<uint64_t>(arena.bytes)});
}

Status ModelDevice::share(void *host, uint64_t bytes, Address &address) {
  ACCEL_RT_RETURN_IF_ERROR(inner->share(host, bytes, address));
  return memory.add({"shared", static_cast<int64_t>(bytes), 64, 0}, address);
}

Status ModelDevice::upload(Address target, const void *source,
                           const Rows &rows) {
  ACCEL_RT_RETURN_IF_ERROR(
      memory.copy(ModelMemory::Copy::Upload, target, rows));
  return inner->upload(target, source, rows);
}

Status ModelDevice::download(void *target, Address source, const Rows &rows) {
  ACCEL_RT_RETURN_IF_ERROR(
      memory.copy(ModelMemory::Copy::Download, source, rows));
  return inner->download(target, source, rows);
}

Status ModelDevice::fill(Address target, int byte, const Rows &rows) {
  ACCEL_RT_RETURN_IF_ERROR(memory.copy(
      byte == kPoison ? ModelMemory::Copy::Poison : ModelMemory::Copy::Fill,
      target, rows));
  return inner->fill(target, byte, rows);
}

Status ModelDevice::prepare(const Command &command,
                            std::unique_ptr<Task> &task) {
  std::unique_ptr<Task> made;
  ACCEL_RT_RETURN_IF_ERROR(inner->prepare(command, made));
  task = std::make_unique<ModelTask>(std::move(made),
                                     describeCommand(command, nullptr));
  return Status();
}

Status ModelDevice::makeStreams(const StreamPlan &plan, StreamWatcher &watcher,
                                std::unique_ptr<Streams> &streams) {
  streams = std::make_unique<ModelStreams>(plan, watcher, options, memory);
  return Status();
}

DeviceKind modelDevice(ModelOptions options, const char *name) {
  auto checkMachine = [](const Executable &plan, const std::string &path) {
    // Its kernels are the CPU's.
    Executable ofCpu;
    ofCpu.target = cpu::kName;
    ofCpu.features =
        featuresOf(plan, plan.target.substr(0, plan.target.find(':')));
    return cpu::checkMachine(ofCpu, path);
  };
  const char *library =
      name == std::string(kName) ? kLibrarySection : cpu::kLibrarySection;
  return {name, /*executes=*/true, cpu::isOfProcess, checkMachine,
          [options, library](const ExecutableFile &file, ThreadPool &pool,
                             std::atomic<uint64_t> *populated,
                             std::unique_ptr<Device> &device) {
            std::unique_ptr<Device> cpu;
            ACCEL_RT_RETURN_IF_ERROR(
                cpu::makeDeviceOf(library, file, pool, populated, cpu));
            device = std::make_unique<ModelDevice>(
                std::make_unique<test::WalledDevice>(std::move(cpu)), options);
            return Status();
          }};
}

std::optional<ModelOptions> optionsOfEnvironment() {
  const char *text = std::getenv("ACCEL_MODEL_ORDER");
  if (!text)
    return {};
  ModelOptions options;
  if (Status status = Order::parse(text, options.order); !status.ok()) {
    std::fprintf(stderr, "ACCEL_MODEL_ORDER: %s\n", status.message().c_str());
    std::exit(2);
  }
  options.tells = std::getenv("ACCEL_MODEL_TELLS");
  return options;
}

const DeviceKind *modelDeviceOfEnvironment() {
  static const std::optional<DeviceKind> device =
      []() -> std::optional<DeviceKind> {
    if (std::optional<ModelOptions> options = optionsOfEnvironment())
      return modelDevice(*options);
    return {};
  }();
  return device ? &*device : nullptr;
}

} // namespace accel::rt::model
