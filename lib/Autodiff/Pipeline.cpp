// The story of phase 2.

#include "Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace accel;

void autodiff::buildTrainPipeline(OpPassManager &pm,
                                  const TrainOptions &options) {
  if (options.enabled) {
    // While the forward has all of its outputs.
    AddInferencePassOptions inference;
    inference.loss = options.loss;
    inference.entries.assign(options.entries.begin(), options.entries.end());
    if (inference.entries.empty())
      inference.entries.assign({"eval", "forward"});
    inference.evalOutputs.assign(options.evalOutputs.begin(),
                                 options.evalOutputs.end());
    pm.addPass(createAddInferencePass(inference));
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
