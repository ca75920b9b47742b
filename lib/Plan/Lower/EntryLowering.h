// One entry and the tasks that its schedule runs on one stage, as bodies and a
// run list.

#ifndef ACCEL_LIB_PLAN_LOWER_ENTRYLOWERING_H
#define ACCEL_LIB_PLAN_LOWER_ENTRYLOWERING_H

#include "StageTransfers.h"

namespace accel::plan {

/// Lowers what one stage does of an entry of phase `local`.
class EntryLowering {
public:
  /// `schedule` is the entry's; null if it is a function that runs once. The
  /// names of bodies begin with `prefix`.
  EntryLowering(SharedProgram &shared, mlir::func::FuncOp entry,
                dist::ScheduleOp schedule, int64_t stage,
                llvm::StringRef prefix);

  /// Adds the bodies, and to `call`, which is empty, the run list. Emits a
  /// located error and fails where something has no lowering.
  mlir::LogicalResult run(EntryOp call);

private:
  mlir::LogicalResult lowerTask(mlir::func::FuncOp task);
  mlir::LogicalResult lowerArgument(mlir::func::FuncOp task,
                                    mlir::BlockArgument argument,
                                    TaskBodies &bodies);
  mlir::LogicalResult lowerResults(mlir::func::FuncOp task, TaskBodies &bodies);
  mlir::LogicalResult writeOutputs(mlir::func::FuncOp task, TaskBodies &bodies);
  BodyOp createBody(llvm::StringRef name);
  int64_t countMicroBatches(); ///< of a call
  /// The verifier has seen that the schedule's tasks are there.
  mlir::func::FuncOp findTask(mlir::FlatSymbolRefAttr name) {
    return shared.symbols.lookup<mlir::func::FuncOp>(name.getAttr());
  }
  mlir::FailureOr<Place> findSource(mlir::func::FuncOp task,
                                    mlir::BlockArgument argument);
  bool isOwn(mlir::FlatSymbolRefAttr task);
  void keepOldStates(mlir::func::FuncOp task);
  /// Sets `reads` of the stage's tasks.
  void findReaders();
  mlir::LogicalResult writeRunList(EntryOp call);
  void readInput(mlir::Location loc, mlir::StringAttr input,
                 mlir::RankedTensorType type, PartAttr part, BodyOp body,
                 bool isSplit);
  /// A tensor in the target's space for files: where the micro-batch at hand
  /// has it, and all of it, which a command reads or writes.
  struct Staged {
    Place own, all;
  };
  Staged createStaged(mlir::Location loc, llvm::StringRef name, Role role,
                      mlir::RankedTensorType type, bool ofEach);

  SharedProgram &shared;
  mlir::func::FuncOp entry;
  dist::ScheduleOp schedule;
  dist::StageOp stage; ///< of the schedule
  std::string prefix;
  StageTransfers transfers;
  /// By task and argument.
  llvm::DenseMap<std::pair<mlir::Attribute, unsigned>, dist::EdgeOp> edges;
  llvm::StringMap<BufferOp> inputs;
  /// Of a target that wants files read at the start of a call and written at
  /// its end: where each input lies then, and the bodies that do.
  llvm::StringMap<Staged> read;
  BodyOp reads, writes;
  llvm::MapVector<mlir::StringAttr, TaskBodies> tasks;
  llvm::DenseSet<mlir::Attribute> repeated; ///< tasks that run more than once
  bool writesStates = false;                ///< a task does
  /// The stage's tasks, numbered in the order of their first runs, and of each
  /// state those that write it.
  llvm::DenseMap<mlir::Attribute, size_t> numbers;
  llvm::StringMap<llvm::SmallVector<mlir::FlatSymbolRefAttr, 2>> writers;
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_ENTRYLOWERING_H
