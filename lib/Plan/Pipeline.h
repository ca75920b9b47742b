// The phase from `local` to `plan`.

#ifndef ACCEL_LIB_PLAN_PIPELINE_H
#define ACCEL_LIB_PLAN_PIPELINE_H

#include "Passes.h"

namespace accel::plan {

/// What a plan is made for, and its passes' own options where only one of them
/// reads it.
struct PlanOptions {
  std::string target;  ///< as `--target` has it
  int64_t threads = 0; ///< per rank; 0: as many as the target counts with
  BucketCollectivesPassOptions buckets;
  MarkOffloadedPassOptions offloaded;
  TileUpdatesPassOptions tiles; ///< its target is `target`
  OffloadStatesPassOptions offload;
  AllocateBuffersPassOptions allocate; ///< its target is `target`
  OffloadActivationsPassOptions activations;
};

/// From `local` to a plan whose buffers have their places, not proved: for who
/// asks what it would take. `stages` are those that are planned, all if there
/// are none.
void buildTrialPipeline(mlir::OpPassManager &pm, const PlanOptions &options,
                        llvm::ArrayRef<int64_t> stages = {});

/// From `local` to a plan that is ordered, allocated and proved.
void buildPlanPipeline(mlir::OpPassManager &pm, const PlanOptions &options);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_PIPELINE_H
