// The table of targets. It has a file of its own, so that a tool of the tests
// can be linked with another one (test/ModelDevice).

#ifndef ACCEL_LIB_DRIVER_TARGETS_H
#define ACCEL_LIB_DRIVER_TARGETS_H

#include "lib/Target/TargetTable.h"

namespace accel::driver {

/// The first is what is compiled for unless --target says otherwise.
std::vector<TargetTable::Row> targetRows();

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_TARGETS_H
