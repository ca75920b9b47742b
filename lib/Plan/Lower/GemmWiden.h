// Casts of products that the products make themselves.

#ifndef ACCEL_LIB_PLAN_LOWER_GEMMWIDEN_H
#define ACCEL_LIB_PLAN_LOWER_GEMMWIDEN_H

#include "dialects/NN/NN.h"
#include "lib/Target/Target.h"

namespace accel::plan {

/// The product that can write what the cast `op` makes of it, f32 of bf16, into
/// memory instead of its own result; null if there is none. Nothing else reads
/// the product, and what reads the cast is no kernel that would rather read
/// half the bytes and cast on the way: it leaves the task, goes to other ranks,
/// is a table that slices are added to in place, or a sum so far that a product
/// is added to. Not rounding to bf16 first is closer to the exact sum, not
/// farther. Null, too, where the target does not widen.
nn::MatmulOp matchGemmWiden(mlir::Operation *op, const Target &target);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_GEMMWIDEN_H
