// Whether a machine has a device, asked before the ranks are forked without
// touching it.

#ifndef ACCEL_RUNTIME_RUN_LOOKFORDEVICE_H
#define ACCEL_RUNTIME_RUN_LOOKFORDEVICE_H

#include "Device/Devices.h"

namespace accel::rt {

/// DeviceKind::checkMachine in a process of its own: a driver that was started
/// here would be broken in the ranks, which are forked from here, and each of
/// them starts its own. Errors: what that says, and that the process ended
/// without saying anything.
Status lookForDevice(const DeviceKind &device, const Executable &plan,
                     const std::string &path);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_LOOKFORDEVICE_H
