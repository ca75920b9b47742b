// The story of the phase: group, lower, (the target), reuse, allocate, prove.

#include "accel/Plan/Pipeline.h"

#include "accel/Plan/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

void accel::plan::buildLowerToPlanPipeline(OpPassManager &pm,
                                           const PlanOptions &) {
  // While values are tensors, fusion is a question about ops.
  pm.addPass(createFormKernelsPass());
  // What is left are commands and views: give them bytes.
  pm.addPass(createLowerToPlanPass());
}

void accel::plan::buildSchedulePlanPipeline(OpPassManager &pm,
                                            const PlanOptions &options) {
  // Before anything asks when bytes are used.
  pm.addPass(createKeepInFlightPass({options.alignment}));
  // While every gradient still has a reduction of its own.
  pm.addPass(createBucketCollectivesPass());
  // Now that they are as few as they get.
  pm.addPass(createOverlapCollectivesPass());
  // Before allocation: a buffer that is gone needs no place.
  pm.addPass(createReuseBuffersPass());
  // All buffers and the order are final now.
  pm.addPass(createAllocateBuffersPass({options.alignment}));
  // From here on the plan is believed: by the emitter, and by the runtime.
  pm.addPass(createVerifyPlanPass());
}
