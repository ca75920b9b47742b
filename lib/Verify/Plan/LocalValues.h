// What one rank's program in phase `local` gives: the value of every output and
// of every state.

#ifndef ACCEL_LIB_VERIFY_PLAN_LOCALVALUES_H
#define ACCEL_LIB_VERIFY_PLAN_LOCALVALUES_H

#include "Meaning.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace accel::verify {

/// Runs the tasks of the entry as its schedule says, on value numbers.
class LocalValues {
public:
  struct Output {
    TermId term;
    PieceKey piece;
    mlir::Operation *task;
    bool written = false; ///< by the plan
  };
  struct State {
    TermId term; ///< now
    PieceKey piece;
    bool changes = false;
  };

  LocalValues(mlir::ModuleOp module, Meaning &meaning)
      : module(module), meaning(meaning) {}
  mlir::LogicalResult run();

  /// By name and micro-batch.
  llvm::MapVector<std::pair<mlir::StringAttr, int64_t>, Output> outputs;
  llvm::MapVector<mlir::StringAttr, State> states;

private:
  mlir::LogicalResult runTask(mlir::func::FuncOp task, int64_t microBatch);
  mlir::FailureOr<TermId> getArgument(mlir::func::FuncOp task, unsigned number);
  mlir::LogicalResult takeResult(mlir::func::FuncOp task, unsigned number,
                                 TermId term);
  State &getState(mlir::func::FuncOp task, mlir::StringAttr name,
                  const PieceKey &piece, mlir::RankedTensorType type);
  void readEdges();

  mlir::ModuleOp module;
  Meaning &meaning;
  dist::ScheduleOp schedule;
  llvm::DenseMap<mlir::StringAttr, mlir::func::FuncOp> tasks;
  llvm::DenseSet<mlir::StringAttr> changing; ///< states that tasks write
  using End = std::pair<mlir::StringAttr, unsigned>;
  llvm::DenseMap<End, End> edges;    ///< from an argument to its result
  llvm::DenseMap<End, TermId> given; ///< by tasks, when they last ran
};

} // namespace accel::verify

#endif // ACCEL_LIB_VERIFY_PLAN_LOCALVALUES_H
