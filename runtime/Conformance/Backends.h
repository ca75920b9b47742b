// The devices that the conformance suite runs on: one table. A new back end
// adds a row; what it cannot do is listed with the reason, never left out in
// silence.

#ifndef ACCEL_RUNTIME_CONFORMANCE_BACKENDS_H
#define ACCEL_RUNTIME_CONFORMANCE_BACKENDS_H

#include "Base/ThreadPool.h"
#include "Device/Null/NullDevice.h"

#include <ostream>

namespace accel::rt::conformance {

/// A device with what it needs around it.
struct Instance {
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<ExecutableFile> file;
  std::vector<RecordedCommand> log;
  std::unique_ptr<Device> device;
};

struct Backend {
  const char *name;
  Status (*make)(Instance &instance);
  /// Case names and why the device has no answer to them.
  std::vector<std::pair<std::string, std::string>> skips;

  /// The reason for skipping a case; empty if it is to be run.
  std::string reasonToSkip(const std::string &test) const;
};
std::ostream &operator<<(std::ostream &stream, const Backend &backend);

const std::vector<Backend> &backends();

} // namespace accel::rt::conformance

#endif // ACCEL_RUNTIME_CONFORMANCE_BACKENDS_H
