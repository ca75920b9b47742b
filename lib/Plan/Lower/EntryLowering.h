// One entry and the tasks that its schedule runs, as bodies and a run list.

#ifndef ACCEL_LIB_PLAN_LOWER_ENTRYLOWERING_H
#define ACCEL_LIB_PLAN_LOWER_ENTRYLOWERING_H

#include "Lowering.h"
#include "RunListWriter.h"
#include "llvm/ADT/MapVector.h"

namespace accel::plan {

/// What the entries of a program share: states and constants, each with one
/// buffer, and the body that reads the former at load.
struct SharedProgram {
  mlir::ModuleOp module;
  const Target &target;
  const mlir::SymbolTable &symbols; ///< of the module, without the program
  ProgramOp program;
  EntryOp load;
  BodyOp loadBody;
  mlir::OpBuilder &commands; ///< where the next command goes
  Lowering &lowering;
  llvm::StringMap<BufferOp> states = {};

  /// A body at the end of the program, its name made unique.
  BodyOp createBody(mlir::Location loc, llvm::StringRef name);

  /// A state has one buffer, whichever tasks read and write it; its first value
  /// is read at load.
  BufferOp getStateBuffer(mlir::FlatSymbolRefAttr state, mlir::Location loc,
                          mlir::RankedTensorType type, PartAttr part);
};

/// Lowers one entry of phase `local`.
class EntryLowering {
public:
  /// `schedule` is the entry's; null if it is a function that runs once. The
  /// names of bodies begin with `prefix`.
  EntryLowering(SharedProgram &shared, mlir::func::FuncOp entry,
                dist::ScheduleOp schedule, llvm::StringRef prefix)
      : shared(shared), entry(entry), schedule(schedule), prefix(prefix) {}

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
  /// The verifier has seen that the schedule's tasks are there.
  mlir::func::FuncOp findTask(mlir::FlatSymbolRefAttr name) {
    return shared.symbols.lookup<mlir::func::FuncOp>(name.getAttr());
  }
  mlir::Value findSource(mlir::func::FuncOp task, unsigned argument);
  void writeRunList(EntryOp call);

  SharedProgram &shared;
  mlir::func::FuncOp entry;
  dist::ScheduleOp schedule;
  std::string prefix;
  /// By task and argument.
  llvm::DenseMap<std::pair<mlir::Attribute, unsigned>, dist::EdgeOp> edges;
  llvm::StringMap<BufferOp> inputs;
  llvm::MapVector<mlir::StringAttr, TaskBodies> tasks;
  bool writesStates = false; ///< a task does
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_ENTRYLOWERING_H
