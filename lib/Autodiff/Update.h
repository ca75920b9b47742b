// The update of parameters by an optimizer: formulas on the parts of a step.
// Private to the library.

#ifndef ACCEL_LIB_AUTODIFF_UPDATE_H
#define ACCEL_LIB_AUTODIFF_UPDATE_H

#include "NNBuilder.h"
#include "UpdateRule.h"

namespace accel::autodiff {

/// The learning rate of step number `step` (rank-0 f64, from 1).
mlir::Value buildLearningRate(const NNBuilder &build, const UpdateRule &rule,
                              mlir::Value step);

/// Name prefixes of the states that the rule keeps beside each parameter, in
/// the order in which `buildUpdate` takes and gives them.
llvm::SmallVector<llvm::StringRef> momentNames(const UpdateRule &rule);

/// What an update reads that is the same for all parameters: rank-0 f64.
struct UpdateScalars {
  mlir::Value lr;
  /// AdamW's factor of the parameter, 1 - lr · weight_decay; else null.
  mlir::Value keep;
  /// Of Adam's averages: lr / (1 - beta1^t), sqrt(1 - beta2^t); null for SGD.
  mlir::Value size, sqrtCorrection;
};
UpdateScalars buildUpdateScalars(const NNBuilder &build, const UpdateRule &rule,
                                 mlir::Value lr, mlir::Value step);

/// New values of a parameter and its moments.
struct Updated {
  mlir::Value parameter;
  llvm::SmallVector<mlir::Value> moments;
};

/// One step of torch.optim.SGD, Adam or AdamW (their single-tensor formulas;
/// Kingma and Ba, arXiv:1412.6980; Loshchilov and Hutter, arXiv:1711.05101).
/// Everything is of the parameter's type. `decayed`: whether the rule's weight
/// decay is asked of it.
Updated buildUpdate(const NNBuilder &build, const UpdateRule &rule,
                    const UpdateScalars &scalars, bool decayed,
                    mlir::Value parameter, mlir::Value gradient,
                    llvm::ArrayRef<mlir::Value> moments);

/// The sum of squares of all elements of `gradients`, in `element`. Rows are
/// summed before they are added up, so that kernels have rows.
mlir::Value buildSumOfSquares(const NNBuilder &build,
                              llvm::ArrayRef<mlir::Value> gradients,
                              mlir::Type element);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_UPDATE_H
