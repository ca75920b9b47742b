// Attaches the models of all op groups when the nn dialect is loaded.

#include "lib/Autodiff/Models.h"

#include "Group.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

void autodiff::registerDifferentiableModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    attachElementwiseModels(context);
    attachLinearModels(context);
    attachConvolutionModels(context);
    attachNormModels(context);
    attachAttentionModels(context);
    attachShapeModels(context);
    attachReductionModels(context);
    attachLossModels(context);
  });
}
