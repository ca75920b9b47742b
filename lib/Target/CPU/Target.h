// The CPU's row of the table of targets.

#ifndef ACCEL_LIB_TARGET_CPU_TARGET_H
#define ACCEL_LIB_TARGET_CPU_TARGET_H

#include "lib/Target/TargetTable.h"

namespace accel::cpu {

/// "cpu": this machine; "cpu:NAME": as parseTarget (CpuTarget.h) says.
TargetTable::Row getTargetRow();

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_TARGET_H
