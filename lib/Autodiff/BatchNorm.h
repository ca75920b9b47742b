// Batch normalisation: by statistics of the batch in a step, by running ones
// elsewhere. Private to the library.

#ifndef ACCEL_LIB_AUTODIFF_BATCHNORM_H
#define ACCEL_LIB_AUTODIFF_BATCHNORM_H

#include "StepStates.h"

namespace accel::autodiff {

/// Whose statistics normalise what.
struct BatchNormScope {
  /// Equal parts of the batch, one after another in it, that have statistics of
  /// their own.
  int64_t parts = 1;
  /// How often a step updates running statistics, each time by the mean of
  /// the statistics of as many parts: a divisor of `parts`.
  int64_t updates = 1;
};

/// Replaces each nn.batch_norm of `entry` by what running statistics make of
/// its operand.
void normalizeByRunning(mlir::func::FuncOp entry);

/// Replaces each nn.batch_norm of the step `entry` by what the statistics of
/// its part of the batch make of its operand, and returns the running ones
/// behind the step, in the order of the arguments. Rows are where `batchDims`
/// say (lib/Names/BatchDim.h).
///
/// Fails, with an error at the op, where a part has a single number of a
/// channel, where parts do not divide the batch or the rows of a batch cannot
/// be followed to the operand (asked for only if there are several parts), or
/// where running statistics are no states.
mlir::FailureOr<llvm::SmallVector<Write>>
normalizeByBatch(mlir::func::FuncOp entry, const BatchNormScope &scope,
                 llvm::ArrayRef<std::string> batchDims);

/// Warns of running statistics that nothing reads: a norm that the loss does
/// not depend on is gone, and what it would have kept stays as it is.
void warnOfUnread(mlir::func::FuncOp entry);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_BATCHNORM_H
