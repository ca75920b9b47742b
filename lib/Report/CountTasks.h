// The figures of a pipeline's tasks and edges.

#ifndef ACCEL_LIB_REPORT_COUNTTASKS_H
#define ACCEL_LIB_REPORT_COUNTTASKS_H

#include "PipelineFigures.h"

namespace accel::report {

/// Fills in chunks and crossings. Requires all else, and that the placement has
/// the chunks of all tasks that run.
void countTasks(PipelineFigures &figures);

} // namespace accel::report

#endif // ACCEL_LIB_REPORT_COUNTTASKS_H
