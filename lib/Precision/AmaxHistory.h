// Delayed scaling: the scale of a tensor from its largest magnitudes in the
// steps before. Private to the library.

#ifndef ACCEL_LIB_PRECISION_AMAXHISTORY_H
#define ACCEL_LIB_PRECISION_AMAXHISTORY_H

#include "Fp8Recipe.h"
#include "lib/Autodiff/NNBuilder.h"

namespace accel::precision {

/// What a quantizer keeps from step to step.
struct QuantizerStates {
  mlir::Value scale;   ///< f32 scalar
  mlir::Value history; ///< f32 [length]; the first is 0 between steps
};

/// What becomes of them in a step in which the largest magnitude was `amax`, an
/// f32 scalar: Transformer Engine's delayed scaling to the letter
/// (transformer_engine/common/recipe/delayed_scaling.cu), once a step.
/// `largest` is that of the format.
QuantizerStates updateHistory(const autodiff::NNBuilder &build,
                              const QuantizerStates &old, mlir::Value amax,
                              double largest, const Fp8Recipe &recipe);

} // namespace accel::precision

#endif // ACCEL_LIB_PRECISION_AMAXHISTORY_H
