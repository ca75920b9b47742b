// The story of the phase: group, lower, choose forms, reuse, offload,
// allocate, prove.

#include "Pipeline.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

void accel::plan::buildTrialPipeline(OpPassManager &pm,
                                     const PlanOptions &options,
                                     llvm::ArrayRef<int64_t> stages) {
  // Before fusion, which takes the casts into the kernels around them.
  pm.addPass(createNarrowWiresPass());
  // While values are tensors, fusion is a question about ops.
  pm.addPass(createFormKernelsPass({options.target}));
  // What is left are commands and views: give them bytes.
  pm.addPass(createLowerToPlanPass(
      {options.target, llvm::SmallVector<int64_t>(stages)}));
  // What lies on the host is not packed beside it.
  pm.addPass(createMarkOffloadedPass(options.offloaded));
  // Forms ask for scratch and packed weights, so they come before addresses.
  pm.addPass(createChooseFormsPass({options.target, options.threads}));
  // While buffers hold one value each, and before micro-batches have copies.
  pm.addPass(createOffloadActivationsPass(options.activations));
  // Before anything asks when bytes are used.
  pm.addPass(createKeepInFlightPass());
  // While every gradient still has a reduction of its own.
  pm.addPass(createBucketCollectivesPass(options.buckets));
  // Now that they are as few as they get.
  pm.addPass(createOverlapCollectivesPass());
  // Before allocation: a buffer that is gone needs no place.
  pm.addPass(createReuseBuffersPass());
  // What is updated in place is staged once, and in parts where that is large.
  TileUpdatesPassOptions tiles = options.tiles;
  tiles.target = options.target;
  pm.addPass(createTileUpdatesPass(tiles));
  pm.addPass(createOffloadStatesPass(options.offload));
  // All buffers and the order are final now.
  AllocateBuffersPassOptions allocate = options.allocate;
  allocate.target = options.target;
  pm.addPass(createAllocateBuffersPass(allocate));
}

void accel::plan::buildPlanPipeline(OpPassManager &pm,
                                    const PlanOptions &options) {
  buildTrialPipeline(pm, options);
  // What is prepared at load is known now.
  pm.addPass(createReserveForLibrariesPass({options.target, options.threads}));
  // From here on the plan is believed: by the emitter, and by the runtime.
  pm.addPass(createVerifyPlanPass({options.target}));
}
