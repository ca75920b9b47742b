// The logical program, to be looked up.

#ifndef ACCEL_LIB_VERIFY_LOGICAL_H
#define ACCEL_LIB_VERIFY_LOGICAL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace accel::verify {

/// An entry of the logical program, by what its values are used for. Where a
/// value is placed (dist.reshard) and where the update begins (nn.gradient)
/// does not change what it is: such ops are looked through.
class Logical {
public:
  using Ops = llvm::SetVector<mlir::Operation *>;

  explicit Logical(mlir::func::FuncOp entry);

  /// The value without the ops that are looked through.
  static mlir::Value rootOf(mlir::Value value);
  /// The ops that read a root.
  const Ops &getReaders(mlir::Value root) const;
  /// The ops that read a constant of equal elements.
  const Ops &getReaders(mlir::Attribute element) const;
  /// The ops without operands that have a name.
  const Ops &getSources(mlir::OperationName name) const;

  /// Arguments, and roots of results.
  llvm::StringMap<mlir::Value> inputs, states, outputs, newStates;

private:
  llvm::DenseMap<mlir::Value, Ops> readers;
  llvm::DenseMap<mlir::Attribute, Ops> readersOfElement;
  llvm::DenseMap<mlir::OperationName, Ops> sources;
};

} // namespace accel::verify

#endif // ACCEL_LIB_VERIFY_LOGICAL_H
