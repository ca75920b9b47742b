// Dimensions that are parts side by side: the columns of one weight that make
// queries, keys and values.

#ifndef ACCEL_LIB_PARALLEL_STRATEGY_FUSEDDIMS_H
#define ACCEL_LIB_PARALLEL_STRATEGY_FUSEDDIMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace accel::parallel {

class DimClasses;

/// The classes of dimensions that a function cuts into parts, and joins of them
/// (`nn.slice`, `nn.concat`), and whose order matters to nothing else. A rank
/// may have its share of each part of such a dimension, if all tensors that
/// have it are in that order.
class FusedDims {
public:
  /// Where an op cuts `part` out of `whole`, or joins it to others.
  struct Link {
    mlir::Operation *op;
    unsigned dim; ///< of its operands and results
    mlir::Value whole, part;
    int64_t start, size;
  };

  FusedDims(mlir::func::FuncOp function, const DimClasses &classes);

  /// The sizes of the parts of a dimension; empty: it is not fused.
  llvm::ArrayRef<int64_t> getParts(mlir::Value value, unsigned dim) const;
  /// Those of fused dimensions; all of an op follow each other.
  llvm::ArrayRef<Link> getLinks() const { return links; }
  /// Whether an op cuts or joins a fused dimension, `dim`.
  bool cuts(mlir::Operation *op, unsigned dim) const {
    return ops.lookup(op) == dim + 1;
  }

private:
  void findLinks(mlir::func::FuncOp function);
  llvm::DenseSet<unsigned> findFixed(mlir::func::FuncOp function) const;
  void findParts(const llvm::DenseSet<unsigned> &fixed,
                 const llvm::DenseSet<unsigned> &ofStates);

  const DimClasses &classes;
  llvm::SmallVector<Link> links;
  llvm::DenseMap<mlir::Operation *, unsigned> ops; ///< and the dimension + 1
  llvm::DenseMap<unsigned, llvm::SmallVector<int64_t>> parts; ///< by class
};

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_STRATEGY_FUSEDDIMS_H
