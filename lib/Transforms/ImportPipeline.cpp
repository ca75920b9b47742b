// The story of phase 1 after the importer.

#include "Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace accel;

void transforms::buildImportPipeline(OpPassManager &pm) {
  // No pattern behind it has to know tensors without elements.
  pm.addNestedPass<func::FuncOp>(createFoldEmptyPass());
  // Exporters write constants and casts once per use, and transposes around
  // reshapes; recognition need know only one form of each.
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createCSEPass());
  // Masks and tables as they were before import repeated them over the batch.
  pm.addNestedPass<func::FuncOp>(createNarrowConstantsPass());
  // Before anything else can take the pieces apart.
  pm.addNestedPass<func::FuncOp>(createRecognizeLayerNormPass());
  pm.addNestedPass<func::FuncOp>(createRecognizeGeluPass());
  pm.addNestedPass<func::FuncOp>(createRecognizeLog1pPass());
  pm.addNestedPass<func::FuncOp>(createRecognizeAttentionPass());
  pm.addNestedPass<func::FuncOp>(createGroupProductsPass());
  // Where activations are one op each, which experts are compared by.
  pm.addPass(createStackExpertsPass());
  // Only attention knows that heads share others.
  pm.addNestedPass<func::FuncOp>(createGroupHeadsPass());
  // When nothing is taken together any more that exporters took apart.
  pm.addNestedPass<func::FuncOp>(createPutChannelsLastPass());
  // Transposes that recognition left meet those that were there; masks of
  // different layers are one.
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createCSEPass());
  pm.addPass(createVerifyPhasePass());
}
