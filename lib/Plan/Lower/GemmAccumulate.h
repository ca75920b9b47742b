// Additions to a state that a matrix product takes along.

#ifndef ACCEL_LIB_PLAN_LOWER_GEMMACCUMULATE_H
#define ACCEL_LIB_PLAN_LOWER_GEMMACCUMULATE_H

#include "dialects/NN/NN.h"
#include "lib/Target/Target.h"
#include <optional>

namespace accel::plan {

/// state + matmul(…), where the sum is the state's new value; perhaps with a
/// cast to the state's wider type between.
struct GemmAccumulate {
  nn::MatmulOp matmul;
  nn::CastOp cast; ///< or null
  mlir::BlockArgument state;
};

/// What `op` adds to which state, if it is the addition of a product that
/// nothing else reads to a state whose old value nothing else reads: the
/// product may then add to the state's bytes whenever it runs. A product of
/// bf16 that is cast to f32 is not rounded to bf16 on its way. Nothing where
/// the target does not accumulate.
std::optional<GemmAccumulate> matchGemmAccumulate(mlir::Operation *op,
                                                  const Target &target);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_GEMMACCUMULATE_H
