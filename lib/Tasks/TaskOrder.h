// In which order the tasks of an entry run on each stage, by the name of its
// schedule.

#ifndef ACCEL_LIB_TASKS_TASKORDER_H
#define ACCEL_LIB_TASKS_TASKORDER_H

#include "TaskHomes.h"
#include "dialects/Dist/ScheduleKind.h"
#include "lib/Pipeline/Schedule.h"
#include <map>

namespace accel::tasks {

/// The order of an entry's tasks. What is counted comes first, then what is
/// prepared, round by round; then the micro-batches, as the schedule has them;
/// then the update, round by round.
class TaskOrder {
public:
  /// By the schedule that the module's decisions name, of a program that they
  /// do not say anything of by the plainest; by `auto` in the order that they
  /// have (DecidedOrder.h). An entry that does not train runs the forwards in
  /// the order of the step's.
  ///
  /// Errors, at the entry: no schedule of that name for so many stages; chunks
  /// that the schedule does not have; an order that is none; more micro-batches
  /// in flight than there are.
  static mlir::FailureOr<TaskOrder> choose(mlir::func::FuncOp entry,
                                           const TaskHomes &homes,
                                           int64_t microBatches,
                                           int64_t stages);

  int64_t getMicroBatches() const { return microBatches; }
  int64_t countStages() const { return placement.ranks; }
  /// Whether backwards run in two parts.
  bool splitsBackward() const { return splits; }

  /// What a task is called in the schedule.
  dist::TaskAttr getTask(const Place &place) const;

  /// Writes the runs of a stage, of the tasks that have names.
  void write(int64_t stage, const std::map<Place, llvm::StringRef> &names,
             mlir::OpBuilder &list, mlir::Location loc) const;

private:
  TaskOrder(mlir::MLIRContext *context, int64_t microBatches)
      : context(context), microBatches(microBatches) {}

  mlir::MLIRContext *context;
  int64_t microBatches;
  bool splits = false;
  pipeline::Placement placement;
  /// Of each stage the order of its micro-batches, in parts that repeat.
  struct Part {
    int64_t trips;
    llvm::SmallVector<std::pair<Place, int64_t>> runs; ///< and first turns'
  };
  std::vector<std::vector<Part>> parts;
};

} // namespace accel::tasks

#endif // ACCEL_LIB_TASKS_TASKORDER_H
