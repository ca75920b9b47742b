// Bias additions that a matrix product takes along.

#ifndef ACCEL_LIB_PLAN_LOWER_GEMMBIAS_H
#define ACCEL_LIB_PLAN_LOWER_GEMMBIAS_H

#include "dialects/NN/NN.h"
#include "lib/Target/Target.h"
#include <optional>

namespace accel::plan {

/// matmul(…) + broadcast(bias), perhaps with a reshape between.
struct GemmBias {
  nn::MatmulOp matmul;
  mlir::Value
      bias; ///< an argument or a constant of as many elements as columns
};

/// What `op` adds to which product, if it is the addition of one value per
/// column, known before the call, to a product that nothing else reads, on a
/// target that adds biases so.
std::optional<GemmBias> matchGemmBias(mlir::Operation *op,
                                      const Target &target);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_GEMMBIAS_H
