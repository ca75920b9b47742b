// Which values will be terms of sums over ranks, as constraints stand.

#ifndef ACCEL_LIB_PARALLEL_STRATEGY_AXISTERMS_H
#define ACCEL_LIB_PARALLEL_STRATEGY_AXISTERMS_H

#include "lib/Parallel/Propagation/Propagation.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace accel::parallel {

/// The values of an entry that are terms over one axis: what ops make that sum
/// over dimensions which the axis splits, and what is linear in such. Holds
/// while constraints and ops stay as they are.
class AxisTerms {
public:
  AxisTerms(mlir::func::FuncOp entry, dist::MeshOp mesh, llvm::StringRef axis);

  bool contains(mlir::Value value) const { return terms.contains(value); }
  /// In the order of the block.
  llvm::ArrayRef<mlir::Value> getTerms() const { return terms.getArrayRef(); }
  /// Whether an op goes on with the terms that it reads: it needs no sum.
  bool isCarried(mlir::Operation *op) const;
  const Propagation &getPropagation() const { return table; }
  mlir::StringAttr getAxis() const { return axis; }

private:
  bool isSummed(mlir::Operation *op, const ShardingRule &rule) const;

  dist::MeshOp mesh;
  Propagation table;
  mlir::StringAttr axis;
  llvm::SetVector<mlir::Value> terms;
};

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_STRATEGY_AXISTERMS_H
