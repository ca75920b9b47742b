// Which dimensions of a program are split together, what splitting them saves,
// and what it costs: strategies are found in this, not by names or patterns.

#ifndef ACCEL_LIB_PARALLEL_STRATEGY_DIMCLASSES_H
#define ACCEL_LIB_PARALLEL_STRATEGY_DIMCLASSES_H

#include "FusedDims.h"
#include "TensorAxes.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace accel::parallel {

/// The dimensions of a function's values in classes. Two are in one if an op's
/// sharding rule has one factor stand first (major) in both: a split of the one
/// is then a split of the other, and no rank moves an element. The hidden width
/// of an MLP is one class over the first product's weight, the activation, the
/// second product's weight, and all their gradients and moments; the heads of
/// an attention are another. Takes as long as the function has ops.
class DimClasses {
public:
  struct Class {
    /// What a number of pieces must divide.
    int64_t size = 0;
    /// FLOPs of the ops that work on pieces, and bytes that ranks exchange for
    /// each other's pieces: sums over the class where their value is needed
    /// (the sum of two is one), and tensors that an op wants whole. For one
    /// call of the function, on whole tensors.
    int64_t flops = 0, bytes = 0;
    /// The groups that it is in.
    llvm::SmallVector<unsigned, 4> groups;
  };

  /// Parts of `fused` dimensions are split with these. Where tensor-parallel
  /// ranks of `mesh` share a key head, query heads are not split with those.
  explicit DimClasses(mlir::func::FuncOp function,
                      const FusedDims *fused = nullptr, dist::MeshOp mesh = {});

  /// The number of the class of a dimension.
  unsigned find(mlir::Value value, unsigned dim) const;
  const Class &get(unsigned number) const { return classes[number]; }
  /// Classes that meet in one op, or in one tensor: an axis splits one of them.
  llvm::ArrayRef<unsigned> getGroup(unsigned number) const {
    return groups[number];
  }

private:
  unsigned findRoot(unsigned dim) const;
  void join(unsigned dim, unsigned other);
  void join(mlir::Operation *op);
  void joinParts();
  void weigh(mlir::Operation *op);
  void addSums(mlir::Operation *op, const ShardingRule &rule);
  void addTerms(mlir::Value result, unsigned number);
  void makeSum(mlir::Value value, unsigned number);
  void addGroup(llvm::ArrayRef<unsigned> members);

  ShardingRule getRule(ShardingRuleOpInterface op) const;

  const FusedDims *fused;
  int64_t ranks = 1, keyRanks = 1; ///< tensor-parallel; that split key heads
  llvm::DenseMap<mlir::Value, unsigned> firstDims;
  mutable llvm::SmallVector<unsigned> parents;
  llvm::SmallVector<Class> classes; ///< by root
  llvm::SmallVector<llvm::SmallVector<unsigned, 4>> groups;
  /// The classes over which ranks would have terms of a value alone.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<unsigned, 1>> terms;
  llvm::DenseSet<std::pair<mlir::Value, unsigned>> sums; ///< that are counted
};

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_STRATEGY_DIMCLASSES_H
