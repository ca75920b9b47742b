// The table of devices of accel-model-run, linked in the place of
// runtime/Device/Devices.cpp: the CPU's row is the model device's, but where a
// file was made for the model itself. Then bodies of the CPU are the CPU's.

#include "Device/Null/NullDevice.h"
#include "accel-rt/FeatureFormat.h"
#include "test/ModelDevice/ModelDevice.h"

namespace accel::rt {

static const std::vector<DeviceKind> &table() {
  static const model::ModelOptions options =
      model::optionsOfEnvironment().value_or(model::ModelOptions{});
  static const DeviceKind inPlaceOfCpu = model::modelDevice(options);
  static const std::vector<DeviceKind> devices = {
      {cpu::kName, /*executes=*/true, cpu::isOfProcess, cpu::checkMachine,
       [](const ExecutableFile &file, ThreadPool &pool,
          std::atomic<uint64_t> *populated, std::unique_ptr<Device> &device) {
         return isMadeFor(file.plan(), model::kName)
                    ? cpu::makeDevice(file, pool, populated, device)
                    : inPlaceOfCpu.make(file, pool, populated, device);
       }},
      model::modelDevice(options, model::kName),
      {"null", /*executes=*/false, null::isOfProcess, null::checkMachine,
       [](const ExecutableFile &file, ThreadPool &pool,
          std::atomic<uint64_t> *populated, std::unique_ptr<Device> &device) {
         return null::makeDevice(file, pool, populated, device);
       }}};
  return devices;
}

const DeviceKind *findDevice(const std::string &name) {
  for (const DeviceKind &device : table())
    if (name == device.name)
      return &device;
  return nullptr;
}

std::string deviceOf(const Executable &plan) {
  return plan.target.substr(0, plan.target.find(':'));
}

std::string deviceNames() {
  std::string names;
  for (const DeviceKind &device : table())
    names += (names.empty() ? "" : ", ") + inQuotes(device.name);
  return names;
}

} // namespace accel::rt
