// The entry of a module: the function, or the plan, that a run executes.

#ifndef ACCEL_LIB_EVALUATE_ENTRY_H
#define ACCEL_LIB_EVALUATE_ENTRY_H

#include "Interpreter.h"
#include "lib/Evaluate/Placement.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel::evaluate {

/// One argument or result of an entry function.
struct Binding {
  std::string name; ///< of the input or output; `@state` of a state
  bool isState = false;
  mlir::Type element;
  Placement placement; ///< global shape, and how a rank's piece is cut
};

/// Arguments and results of an entry function.
struct Bindings {
  llvm::SmallVector<Binding> arguments, results;
};

/// The function that is that entry; where none is asked for the step, the only
/// entry, or the only public function. An error at the module if that leaves
/// none or several.
mlir::FailureOr<mlir::func::FuncOp> findEntry(mlir::ModuleOp module,
                                              EntryKind kind);

/// What the attributes of the function's arguments and results say.
mlir::FailureOr<Bindings> getBindings(mlir::func::FuncOp entry);

/// The only mesh of a module; null if it has none, an error if it has several.
mlir::FailureOr<dist::MeshOp> findMesh(mlir::ModuleOp module);

/// Whether the module holds plans.
bool isPlan(mlir::ModuleOp module);

/// getSignature and evaluateModule of a module of phase `plan`.
mlir::FailureOr<Signature> getPlanSignature(mlir::ModuleOp module,
                                            EntryKind kind);
mlir::LogicalResult evaluatePlan(mlir::ModuleOp module,
                                 const TensorsByName &inputs,
                                 const InterpreterOptions &options,
                                 TensorsByName &outputs);

} // namespace accel::evaluate

#endif // ACCEL_LIB_EVALUATE_ENTRY_H
