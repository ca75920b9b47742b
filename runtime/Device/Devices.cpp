// The table. A new device adds a row.

#include "Device/Devices.h"

#include "Device/CPU/CpuDevice.h"
#include "Device/Null/NullDevice.h"

namespace accel::rt {

static const DeviceKind kDevices[] = {
    {"cpu", /*executes=*/true, cpu::isOfProcess, cpu::checkMachine,
     cpu::makeDevice},
    {"null", /*executes=*/false, null::isOfProcess, null::checkMachine,
     [](const ExecutableFile &file, ThreadPool &pool,
        std::atomic<uint64_t> *populated, std::unique_ptr<Device> &device) {
       return null::makeDevice(file, pool, populated, device);
     }}};

const DeviceKind *findDevice(const std::string &name) {
  for (const DeviceKind &device : kDevices)
    if (name == device.name)
      return &device;
  return nullptr;
}

std::string deviceOf(const Executable &plan) {
  return plan.target.substr(0, plan.target.find(':'));
}

std::string deviceNames() {
  std::string names;
  for (const DeviceKind &device : kDevices)
    names += (names.empty() ? "" : ", ") + inQuotes(device.name);
  return names;
}

} // namespace accel::rt
