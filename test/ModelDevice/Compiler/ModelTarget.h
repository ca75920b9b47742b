// The compiler's side of the model device (../ModelDevice.h): plans as a device
// with memory of its own wants them, made of the CPU's commands.

#ifndef ACCEL_TEST_MODELDEVICE_COMPILER_MODELTARGET_H
#define ACCEL_TEST_MODELDEVICE_COMPILER_MODELTARGET_H

#include "lib/Target/TargetTable.h"

namespace accel::model {

/// "cuda", or "cuda:NAME" for a CPU of that name, which stands in for the GPU
/// that the device is a model of: its engine is none of the host's.
TargetTable::Row getTargetRow();

} // namespace accel::model

#endif // ACCEL_TEST_MODELDEVICE_COMPILER_MODELTARGET_H
