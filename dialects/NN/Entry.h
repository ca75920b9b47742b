// The entries of a program: functions that are called from outside, which share
// its states.

#ifndef ACCEL_DIALECTS_NN_ENTRY_H
#define ACCEL_DIALECTS_NN_ENTRY_H

#include "dialects/NN/NN.h"
#include "llvm/ADT/DenseSet.h"

namespace accel::nn {

/// What a call of `function` does; none if it is no entry.
std::optional<EntryKind> getEntryKind(mlir::func::FuncOp function);

/// Makes a function an entry.
void setEntryKind(mlir::func::FuncOp function, EntryKind kind);

/// The entries of a module, in their order.
llvm::SmallVector<mlir::func::FuncOp> getEntries(mlir::ModuleOp module);

/// The same, each with a body. Fails, after an error, where one is declared
/// only: phase `local` has dealt it out to tasks, and no pass of an earlier
/// phase has anything to do.
mlir::FailureOr<llvm::SmallVector<mlir::func::FuncOp>>
requireEntries(mlir::ModuleOp module);

/// Fails, after an error, unless all tensors of a function are `placed`, as
/// from phase `dist` on, or none is, as before it and on one rank.
mlir::LogicalResult requireTypes(mlir::func::FuncOp function, bool placed);

/// The entry of a kind; null if there is none.
mlir::func::FuncOp findEntry(mlir::ModuleOp module, EntryKind kind);

/// The states in which each rank keeps a term of its own from step to step, by
/// the references (`nn.state`) that arguments and results have.
llvm::DenseSet<mlir::Attribute> getResiduals(mlir::ModuleOp module);

} // namespace accel::nn

#endif // ACCEL_DIALECTS_NN_ENTRY_H
