// Additions to a state, or to other products, that a matrix product takes
// along.

#ifndef ACCEL_LIB_PLAN_LOWER_GEMMACCUMULATE_H
#define ACCEL_LIB_PLAN_LOWER_GEMMACCUMULATE_H

#include "dialects/NN/NN.h"
#include "lib/Target/Target.h"
#include <optional>

namespace accel::plan {

/// onto + matmul(…), where `onto` is a state and the sum its new value, or a
/// product that is made before, or such a sum of some; perhaps with a cast to
/// the wider type of `onto` between.
struct GemmAccumulate {
  nn::MatmulOp matmul;
  nn::CastOp cast; ///< or null
  mlir::Value onto;
};

/// What `op` adds to what, if it is the addition of a product that nothing else
/// reads to what nothing else reads: the product may then add to the bytes of a
/// state's old value whenever it runs, and to those of other products, which
/// lie before it. A product of bf16 that is cast to f32 is not rounded to bf16
/// on its way. Nothing where the target does not accumulate.
std::optional<GemmAccumulate> matchGemmAccumulate(mlir::Operation *op,
                                                  const Target &target);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_GEMMACCUMULATE_H
