// What acc-run says of a run that was only counted.

#ifndef ACCEL_TOOLS_ACC_RUN_COUNTLINES_H
#define ACCEL_TOOLS_ACC_RUN_COUNTLINES_H

#include "accel-rt/Runtime.h"

namespace accel::rt {

/// Prints the counts of each rank, as one JSON object on a line or as tables,
/// ranks that did the same in one. `result.counts` is not empty.
void printCounts(const RunResult &result, bool json);

} // namespace accel::rt

#endif // ACCEL_TOOLS_ACC_RUN_COUNTLINES_H
