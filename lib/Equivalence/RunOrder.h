// When the tasks of a stage run: on which micro-batches, and which run comes
// before which. Loops are compared as they stand, whatever their turns.

#ifndef ACCEL_LIB_EQUIVALENCE_RUNORDER_H
#define ACCEL_LIB_EQUIVALENCE_RUNORDER_H

#include "dialects/Dist/Dist.h"
#include "llvm/ADT/MapVector.h"

namespace accel::equivalence {

class RunOrder {
public:
  /// Of a schedule of one stage that its verifier has seen.
  explicit RunOrder(dist::ScheduleOp schedule);

  /// Each task runs once, or once for each micro-batch; an error at the
  /// schedule otherwise.
  mlir::LogicalResult verify();

  /// Whether the task runs for each micro-batch, where there are several.
  bool isRepeated(mlir::StringAttr task) const;

  /// A micro-batch for which `target` runs before `source` has: the same one
  /// where both run for each, any one otherwise. None: never.
  std::optional<int64_t> findBefore(mlir::StringAttr source,
                                    mlir::StringAttr target) const;

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
  llvm::MapVector<mlir::StringAttr, llvm::SmallVector<Span>>
      spans; ///< of tasks
};

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_RUNORDER_H
