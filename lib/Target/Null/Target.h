// The null target's row of the table of targets.

#ifndef ACCEL_LIB_TARGET_NULL_TARGET_H
#define ACCEL_LIB_TARGET_NULL_TARGET_H

#include "lib/Target/TargetTable.h"

namespace accel::null {

/// "null": plans for the device that counts commands and executes none.
TargetTable::Row getTargetRow();

} // namespace accel::null

#endif // ACCEL_LIB_TARGET_NULL_TARGET_H
