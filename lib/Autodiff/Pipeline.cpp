// The story of phase 2.

#include "Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace accel;

void autodiff::buildTrainPipeline(OpPassManager &pm,
                                  const TrainOptions &options) {
  if (options.enabled) {
    // While the forward has all of its outputs.
    AddInferencePassOptions inference = options.inference;
    inference.loss = options.step.loss;
    if (inference.entries.empty())
      inference.entries.assign({"eval", "forward"});
    pm.addPass(createAddInferencePass(inference));
    if (options.rowMask) {
      MaskRowsPassOptions mask;
      mask.loss = options.step.loss;
      mask.batchDims = options.inference.batchDims;
      pm.addPass(createMaskRowsPass(mask));
    }
    if (options.tagProducts)
      options.tagProducts(pm);
    BuildStepPassOptions step = options.step;
    step.batchDims = options.inference.batchDims;
    pm.addPass(createBuildStepPass(step));
    if (options.quantizeProducts)
      options.quantizeProducts(pm);
    if (options.measureRounding)
      options.measureRounding(pm);
  }
  if (options.factors)
    pm.addPass(createFactorGradientsPass(options.factor));
  if (options.enabled) {
    // Rules build constants and transposes each for itself.
    pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
    pm.addNestedPass<func::FuncOp>(createCSEPass());
  }
  pm.addPass(createVerifyStepPass());
}
