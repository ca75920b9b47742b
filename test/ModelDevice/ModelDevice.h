// The first half of a model of a GPU, for tests: an asynchronous device whose
// addresses mean nothing to the host. What it runs is the CPU's; when it runs
// it, and what it refuses, is what a device of its own would do at its worst
// (ModelStreams.h, ModelMemory.h).

#ifndef ACCEL_TEST_MODELDEVICE_MODELDEVICE_H
#define ACCEL_TEST_MODELDEVICE_MODELDEVICE_H

#include "../Unit/Runtime/ForwardingDevice.h"
#include "Device/CPU/CpuDevice.h"
#include "Device/Devices.h"
#include "ModelMemory.h"
#include "ModelOptions.h"

namespace accel::rt::model {

class ModelDevice : public test::ForwardingDevice {
public:
  /// `inner` computes; its tasks must be HostTasks.
  ModelDevice(std::unique_ptr<Device> inner, ModelOptions options)
      : ForwardingDevice(std::move(inner)), options(std::move(options)) {}

  const char *name() const override { return "model"; }
  Status allocate(const ArenaPlan &arena, Address &address) override;
  Status share(void *host, uint64_t bytes, Address &address) override;
  Status upload(Address target, const void *source, const Rows &rows) override;
  Status download(void *target, Address source, const Rows &rows) override;
  Status fill(Address target, int byte, const Rows &rows) override;
  Status prepare(const Command &command, std::unique_ptr<Task> &task) override;
  /// As nodes that call the host.
  bool capturesHostTasks() const override { return true; }
  size_t mostCaptured() const override { return options.mostCaptured; }
  Status makeStreams(const StreamPlan &plan, StreamWatcher &watcher,
                     std::unique_ptr<Streams> &streams) override;

private:
  ModelOptions options;
  ModelMemory memory;
};

/// What plans and files call the device where it stands for itself: they are
/// made by accel-model-opt.
inline constexpr const char *kName = "cuda";

/// A row for the table of devices: in the place of the CPU's, which runs what
/// was made for that, or of this device's own (kName).
DeviceKind modelDevice(ModelOptions options, const char *name = cpu::kName);

/// With the order that the environment's ACCEL_MODEL_ORDER says; none where it
/// says none. An order that is none ends the process. ACCEL_MODEL_TELLS,
/// whatever it is, has the device tell of its captures.
std::optional<ModelOptions> optionsOfEnvironment();

/// The row in the CPU's place with the order that the environment's
/// ACCEL_MODEL_ORDER says; null where it says none.
const DeviceKind *modelDeviceOfEnvironment();

} // namespace accel::rt::model

#endif // ACCEL_TEST_MODELDEVICE_MODELDEVICE_H
