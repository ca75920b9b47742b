// The null device: it has every command and executes none. Its arenas have
// addresses and no memory.

#ifndef ACCEL_RUNTIME_DEVICE_NULL_NULLDEVICE_H
#define ACCEL_RUNTIME_DEVICE_NULL_NULLDEVICE_H

#include "accel-rt/Device.h"

namespace accel::rt {

/// A command as the null device saw it.
struct RecordedCommand {
  const Command *command;
  std::vector<Address> addresses;
  int64_t microBatch;
};

namespace null {

/// Records commands into `log`, if there is one. (The log allocates.)
std::unique_ptr<Device> makeDevice(std::vector<RecordedCommand> *log);

/// For the table of devices: any machine will do, and nothing is recorded.
bool isOfProcess(const std::string &space);
Status checkMachine(const Executable &plan, const std::string &path);
Status makeDevice(const ExecutableFile &file, ThreadPool &pool,
                  std::atomic<uint64_t> *populated,
                  std::unique_ptr<Device> &device);

} // namespace null
} // namespace accel::rt

#endif // ACCEL_RUNTIME_DEVICE_NULL_NULLDEVICE_H
