// Which ops of a step are its forward and backward, and which its update.

#ifndef ACCEL_LIB_PARALLEL_STATES_GRADIENTOPS_H
#define ACCEL_LIB_PARALLEL_STATES_GRADIENTOPS_H

#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace accel::parallel {

/// The ops of a step that run per micro-batch, in phases `train` and `dist`.
struct GradientOps {
  /// What the entry's outputs need, up to finished gradients: the forward.
  llvm::DenseSet<mlir::Operation *> forward;
  /// What gradients need and the forward does not have.
  llvm::DenseSet<mlir::Operation *> backward;

  explicit GradientOps(mlir::func::FuncOp entry);
  bool contains(mlir::Operation *op) const {
    return forward.contains(op) || backward.contains(op);
  }
};

/// The sums over ranks or micro-batches that a gradient is made of, the last of
/// each: its own, or those of terms that it adds up in pieces.
llvm::SmallVector<dist::ReshardOp> findGradientSums(nn::GradientOp gradient);

/// The dimension of a state that `ranks` split: the first that they divide;
/// none if there is none.
std::optional<int64_t> findShardDim(llvm::ArrayRef<int64_t> shape,
                                    int64_t ranks);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_STATES_GRADIENTOPS_H
