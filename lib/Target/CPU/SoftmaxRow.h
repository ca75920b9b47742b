// The code of one row of scores: its softmax, or the gradient of it.

#ifndef ACCEL_LIB_TARGET_CPU_SOFTMAXROW_H
#define ACCEL_LIB_TARGET_CPU_SOFTMAXROW_H

#include "EmitKernel.h"

namespace accel::cpu {

/// The addresses that a block of rows is at, in the order of the kernel's
/// arguments. Those that are computed in place are given twice.
struct SoftmaxArguments {
  mlir::Value scores, mask;
  /// Of the gradient: that of the probabilities (gradient · valueᵀ).
  mlir::Value slopes;
  mlir::Value probabilities;
  /// Of the gradient: where that of the scores goes; and of each row the
  /// result and its gradient.
  mlir::Value scoreSlopes, outputs, gradients;
  mlir::Value logSumExps;
  mlir::Value logSumExpGradients; ///< null if there are none

  /// A SoftmaxRows: the keys that the first row sees, the columns and the
  /// strides of rows.
  mlir::Value visible, columns, scoreStride, resultStride, outputStride;
};

/// One row of a block.
class SoftmaxRow {
public:
  SoftmaxRow(RowEmitter &e, const SoftmaxDesc &desc, const SoftmaxArguments &at,
             mlir::Value row);
  /// Gives the largest score and the sum of the exponentials.
  std::pair<mlir::Value, mlir::Value> emitForward();
  void emitGradient();

private:
  mlir::Value emitMask(mlir::Value where);
  mlir::Value emitScore(mlir::Value column);
  mlir::Value emitProbability(mlir::Value column, mlir::Value logSumExp);
  /// Σ gradient · output, less the gradient of the log-sum-exp.
  mlir::Value emitCommonSlope();
  /// Stores `value` in the columns that `causal` hides.
  void fillHidden(mlir::Value value);

  mlir::ImplicitLocOpBuilder &builder() { return e.builder(); }
  mlir::Value place(mlir::Value begin, mlir::Value column);
  mlir::Value constant(double value);
  /// A sum in any order.
  mlir::Value addUp(mlir::Value sum, mlir::Value term);
  mlir::Value isNothing(mlir::Value largest);

  RowEmitter &e;
  const SoftmaxDesc &desc;
  const SoftmaxArguments &at;
  mlir::Type compute;
  mlir::Value row, begin, resultBegin, maskBegin, zero, visible;
  mlir::Value level; ///< if the mask has levels
};

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_SOFTMAXROW_H
