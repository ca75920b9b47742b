// Reverse-mode differentiation of nn programs.

#ifndef ACCEL_LIB_AUTODIFF_DIFFERENTIATE_H
#define ACCEL_LIB_AUTODIFF_DIFFERENTIATE_H

#include "mlir/IR/Builders.h"

namespace accel::autodiff {

/// Appends at `builder`, which must be behind the ops that `loss` depends on
/// and in their block, the gradient of the scalar `loss` with respect to each
/// value of `wrt`. Gives one value per `wrt`, of its type; null where the loss
/// does not depend on it. Values that the loss reaches by several ways get the
/// sum. Fails with an error at the op where one on the way has no
/// vector-Jacobian product. (Griewank and Walther, Evaluating Derivatives, §3.)
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
differentiate(mlir::OpBuilder &builder, mlir::Value loss, mlir::ValueRange wrt);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_DIFFERENTIATE_H
