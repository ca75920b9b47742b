// The phase from `local` to `plan`, in two parts: a target's own passes stand
// between them.

#ifndef ACCEL_PLAN_PIPELINE_H
#define ACCEL_PLAN_PIPELINE_H

#include <cstdint>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace accel::plan {

/// What a plan is made for.
struct PlanOptions {
  int64_t alignment = 64; ///< of every buffer, in bytes
};

/// From `local` to commands over buffers that have no offsets yet.
void buildLowerToPlanPipeline(mlir::OpPassManager &pm,
                              const PlanOptions &options);

/// From there, once the target has chosen forms and added the buffers that they
/// need, to a plan that is ordered, allocated and proved.
void buildSchedulePlanPipeline(mlir::OpPassManager &pm,
                               const PlanOptions &options);

} // namespace accel::plan

#endif // ACCEL_PLAN_PIPELINE_H
