// What the commands of a plan do to the bytes of virtual ranks.

#ifndef ACCEL_LIB_EVALUATE_PLAN_COMMANDS_H
#define ACCEL_LIB_EVALUATE_PLAN_COMMANDS_H

#include "lib/Evaluate/Interpreter.h"
#include "lib/Evaluate/Plan/RankMemory.h"

namespace accel::evaluate {

/// Global tensors on either side of a plan: inputs given, states as they start,
/// outputs as ranks write their pieces of them.
class PlanWorld {
public:
  PlanWorld(mlir::ModuleOp module, const TensorsByName &inputs,
            EvaluationMode mode)
      : module(module), inputs(inputs), mode(mode) {}

  mlir::ModuleOp getModule() { return module; }
  EvaluationMode getMode() const { return mode; }

  /// The global tensor that a read command names.
  mlir::FailureOr<Tensor> getSource(plan::ReadOp read);
  /// Adds a rank's piece of an output, or of a state's new value.
  mlir::LogicalResult addOutput(plan::WriteOp write, MeshPoint point,
                                const Tensor &piece);
  /// Adds a rank's piece of an output or, as `@name`, of a state.
  mlir::LogicalResult addPiece(llvm::StringRef name, plan::PartAttr part,
                               MeshPoint point, const Tensor &piece,
                               mlir::Operation *at);
  /// All outputs written since the last call, complete or an error.
  mlir::FailureOr<TensorsByName> takeOutputs();

private:
  mlir::ModuleOp module;
  const TensorsByName &inputs;
  EvaluationMode mode;
  llvm::StringMap<Tensor> states; ///< loaded once for all ranks
  llvm::StringMap<Assembly> outputs;
};

/// Executes a command that involves one rank only. Requires that it is no
/// event, collective, send or receive.
mlir::LogicalResult executeCommand(mlir::Operation *op,
                                   const plan::RunTurn &run, RankMemory &memory,
                                   PlanWorld &world);

/// executeCommand of a kernel. Where it writes bytes that it reads, it is
/// checked that rows which threads have finished do not change the others.
mlir::LogicalResult executeKernel(plan::KernelOp kernel,
                                  const plan::RunTurn &run, RankMemory &memory,
                                  PlanWorld &world);

/// A member of a collective: its command, which may stand in another program
/// than the others', the run it belongs to, and its bytes.
struct Member {
  plan::CollectiveOp op;
  plan::RunTurn run;
  RankMemory *memory;
};

/// Executes a collective on all members of a group, in the group's order.
mlir::LogicalResult executeCollective(llvm::ArrayRef<Member> members);

/// Poisons the views that the command releases (`plan.releases`) and its
/// scratch.
mlir::LogicalResult poisonAfter(mlir::Operation *op, const plan::RunTurn &run,
                                RankMemory &memory);

/// The placement that a part means.
Placement getPlacement(plan::PartAttr part);

} // namespace accel::evaluate

#endif // ACCEL_LIB_EVALUATE_PLAN_COMMANDS_H
