// A schedule for those who play it: its runs one by one, and what its tasks
// are.

#ifndef ACCEL_LIB_PLAN_LOWER_SCHEDULERUNS_H
#define ACCEL_LIB_PLAN_LOWER_SCHEDULERUNS_H

#include "dialects/Dist/Dist.h"
#include "llvm/ADT/SetVector.h"

namespace accel::plan {

/// A run of a task on a micro-batch.
struct ScheduledRun {
  mlir::StringAttr task;
  int64_t microBatch;
};

/// The runs of a stage, each turn of a loop for itself.
std::vector<ScheduledRun> listRuns(dist::StageOp stage);

/// What the tasks of a schedule's module are, by their names.
llvm::DenseMap<mlir::StringAttr, dist::TaskAttr>
listTasks(dist::ScheduleOp schedule);

/// Whether tasks of a kind run once, before or after all micro-batches.
bool isOnce(dist::TaskKind kind);

/// The tasks that pass something on to another stage on every micro-batch, and
/// those that read it, in the order of the edges.
llvm::SetVector<std::pair<mlir::StringAttr, mlir::StringAttr>>
listChannels(dist::ScheduleOp schedule);

/// In forwards of a chunk, all of which are alike: a whole backward is as long
/// as its parts.
int64_t getDuration(dist::TaskKind kind);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_SCHEDULERUNS_H
