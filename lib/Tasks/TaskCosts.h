// What the tasks of a step take, by which `--schedule=auto` is found.

#ifndef ACCEL_LIB_TASKS_TASKCOSTS_H
#define ACCEL_LIB_TASKS_TASKCOSTS_H

#include "TaskHomes.h"
#include "lib/Pipeline/Synthesise.h"

namespace accel::tasks {

/// The pipeline of an entry whose backwards are divided: of each chunk the work
/// (lib/Cost/Work.h) of its forward and of both parts of its
/// backward, on one rank, micro-batch by micro-batch; of each two chunks what
/// goes between them, and of each chunk the bytes that a micro-batch's forward
/// keeps for its backward. A rank may keep as many micro-batches as there are
/// stages: what 1F1B keeps on the first.
pipeline::Problem measureTasks(mlir::func::FuncOp entry, const TaskHomes &homes,
                               int64_t stages, int64_t microBatches);

} // namespace accel::tasks

#endif // ACCEL_LIB_TASKS_TASKCOSTS_H
