// The devices that a run can be asked for: one table. What else differs between
// them is behind accel-rt/Device.h.

#ifndef ACCEL_RUNTIME_DEVICE_DEVICES_H
#define ACCEL_RUNTIME_DEVICE_DEVICES_H

#include "accel-rt/Device.h"

#include <functional>

namespace accel::rt {

struct DeviceKind {
  const char *name;
  /// False: nothing is executed, commands are counted. Then there are no bytes:
  /// nothing is read from files, sent, or kept.
  bool executes;
  /// Whether arenas of a space, and what libraries hold there, are memory of
  /// the rank's own process.
  bool (*isOfProcess)(const std::string &space);
  /// Whether this machine has what the code in a file, `path`, needs.
  Status (*checkMachine)(const Executable &plan, const std::string &path);
  /// Makes one for a rank. `pool` must outlive it; `populated` grows with the
  /// bytes of the arenas that have got memory: for large ones that takes
  /// seconds.
  std::function<Status(const ExecutableFile &file, ThreadPool &pool,
                       std::atomic<uint64_t> *populated,
                       std::unique_ptr<Device> &device)>
      make;
};

/// What executes the bodies of an engine in a run. Of several the first is what
/// the file was compiled for.
struct EngineKind {
  std::string engine;
  const DeviceKind *kind;
};

/// The row of that name; null if there is none.
const DeviceKind *findDevice(const std::string &name);

/// The name of the device that a file was compiled for.
std::string deviceOf(const Executable &plan);

/// "'cpu', 'null'": for errors.
std::string deviceNames();

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DEVICE_DEVICES_H
