// The story of phase 2.

#include "accel/Autodiff/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace accel;

void autodiff::buildTrainPipeline(OpPassManager &pm,
                                  const TrainOptions &options) {
  if (options.enabled) {
    BuildStepPassOptions step;
    step.loss = options.loss;
    step.optimizer = options.optimizer;
    step.settings.assign(options.settings.begin(), options.settings.end());
    step.trainable.assign(options.trainable.begin(), options.trainable.end());
    step.frozen.assign(options.frozen.begin(), options.frozen.end());
    step.emitGradients = options.emitGradients;
    pm.addPass(createBuildStepPass(step));
    // Rules build constants and transposes each for itself.
    pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
    pm.addNestedPass<func::FuncOp>(createCSEPass());
  }
  pm.addPass(createVerifyStepPass());
}
