// When the tasks of each stage run: on which micro-batches, and which run comes
// before which. Loops are compared as they stand, whatever their turns.

#ifndef ACCEL_LIB_EQUIVALENCE_RUNORDER_H
#define ACCEL_LIB_EQUIVALENCE_RUNORDER_H

#include "dialects/Dist/Dist.h"
#include "llvm/ADT/MapVector.h"

namespace accel::equivalence {

class RunOrder {
public:
  /// Of a schedule that its verifier has seen.
  explicit RunOrder(dist::ScheduleOp schedule);

  /// Each task runs once, or once for each micro-batch; an error at the
  /// schedule otherwise.
  mlir::LogicalResult verify();

  /// Whether the task runs for each micro-batch, where there are several.
  bool isRepeated(mlir::StringAttr task) const;

  /// A micro-batch for which `target` runs before `source` has: the same one
  /// where both run for each, any one otherwise. None: never, or they are of
  /// different stages, and `target` waits.
  std::optional<int64_t> findBefore(mlir::StringAttr source,
                                    mlir::StringAttr target) const;

  /// The stage that a task runs on.
  int64_t getStage(mlir::StringAttr task) const { return stages.lookup(task); }

  /// The tasks of all runs of all stages, each after what edges bring it, in an
  /// order that keeps each stage's own. An error at the schedule where there is
  /// none: stages wait for each other.
  mlir::FailureOr<std::vector<mlir::StringAttr>> listAll();

private:
  /// The runs that one `dist.run` stands for.
  struct Span {
    int64_t first, end; ///< micro-batches
    unsigned place;     ///< of the run, or the loop around it, in the stage
    unsigned inLoop;    ///< of the run in its loop

    /// Whether its run on a micro-batch comes before `other`'s run on another.
    bool comesBefore(int64_t microBatch, const Span &other,
                     int64_t otherMicroBatch) const;
  };
  void add(dist::RunOp run, unsigned place, unsigned inLoop);

  dist::ScheduleOp schedule;
  llvm::DenseMap<mlir::StringAttr, int64_t> stages; ///< of tasks
  llvm::MapVector<mlir::StringAttr, llvm::SmallVector<Span>>
      spans; ///< of tasks
};

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_RUNORDER_H
