// The passes that place tensors on a mesh and split a program into one rank's,
// and the pipelines they form.

#ifndef ACCEL_PARALLEL_PASSES_H
#define ACCEL_PARALLEL_PASSES_H

#include "dialects/Dist/Dist.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace accel::parallel {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "accel/Parallel/Passes.h.inc"

/// What phase `dist` needs to know.
struct PlaceOptions {
  std::string mesh;                   ///< "dp=4,tp=2"; empty: one rank
  std::vector<std::string> batchDims; ///< "INPUT=K"
  int64_t microBatches = 1;           ///< size of the axis `mb`
};

/// Adds the passes from `train` to `dist`: mesh and constraints, propagation,
/// types with shardings and reshards between them, verification.
void buildPlacePipeline(mlir::OpPassManager &pm, const PlaceOptions &options);

/// Adds the passes from `decided` to one rank's program: reshards become
/// collectives, types one rank's. What follows is `local-split-tasks`, and
/// `local-verify`.
void buildSplitPipeline(mlir::OpPassManager &pm);

} // namespace accel::parallel

#endif // ACCEL_PARALLEL_PASSES_H
