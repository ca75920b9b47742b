// The states that a step keeps beside the model's.

#ifndef ACCEL_LIB_AUTODIFF_STEPSTATES_H
#define ACCEL_LIB_AUTODIFF_STEPSTATES_H

#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include <string>

namespace accel::autodiff {

/// A state that the step writes.
struct Write {
  nn::StateOp state;
  mlir::BlockArgument old;
  mlir::Value value;
};

/// A state to be declared, and the chunk of a pipeline that owns it.
struct NewState {
  std::string name;
  mlir::RankedTensorType type;
  int64_t chunk = 0;
  double first = 0;           ///< of all elements; whole, of integers
  nn::StateOp like = nullptr; ///< begins as this one, where there is one
};

/// Declares states in front of `entry`, which takes them as arguments: before
/// `counters`, or last where that is null. All at once, since each argument
/// added makes the function's type anew. Values are to be set. Fails at a
/// symbol of such a name.
mlir::FailureOr<llvm::SmallVector<Write>>
declareStates(mlir::func::FuncOp entry, mlir::SymbolTable &symbols,
              mlir::BlockArgument counters, llvm::ArrayRef<NewState> wanted,
              nn::StateRole role);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_STEPSTATES_H
