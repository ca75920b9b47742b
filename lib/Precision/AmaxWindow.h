// MS-AMP's scaling: the scale of a tensor from itself at first, then from its
// largest magnitudes in the steps before. Private to the library.

#ifndef ACCEL_LIB_PRECISION_AMAXWINDOW_H
#define ACCEL_LIB_PRECISION_AMAXWINDOW_H

#include "lib/Autodiff/NNBuilder.h"

namespace accel::precision {

/// What a quantizer of MS-AMP keeps from step to step.
struct WindowStates {
  mlir::Value scale;  ///< f32 scalar
  mlir::Value window; ///< f32 [length]; the first is 0 between steps
  mlir::Value count;  ///< i64 scalar: steps since the last amax not finite
};

/// 2^floor(log2(largest / amax)) for each element of `amax`, f32s; where one is
/// 0 or not finite that of `old`, or the inverse of it where one is infinite
/// (ScalingMeta.compute_scaling_factor of msamp/common/tensor/meta.py).
mlir::Value buildPower2Or(const autodiff::NNBuilder &build, mlir::Value amax,
                          double largest, mlir::Value old);

/// With which scale tensors are quantized whose largest magnitudes are `amax`,
/// f32s: each with its own until a whole window of steps has been seen, then
/// all with that of the state. In the shape of `amax`.
mlir::Value buildScaleInTime(const autodiff::NNBuilder &build,
                             mlir::Value scale, mlir::Value count,
                             int64_t length, mlir::Value amax, double largest);

/// What becomes of the states in a step in which the largest magnitude was
/// `amax`, an f32 scalar (_update_scaling_factors of msamp/optim/optimizer.py).
WindowStates updateWindow(const autodiff::NNBuilder &build,
                          const WindowStates &old, mlir::Value amax,
                          double largest);

} // namespace accel::precision

#endif // ACCEL_LIB_PRECISION_AMAXWINDOW_H
