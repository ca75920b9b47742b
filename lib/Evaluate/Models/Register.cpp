// Attaches the models of all op groups when the nn dialect is loaded.

#include "lib/Evaluate/Models.h"

#include "Group.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

void evaluate::registerEvaluateModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    attachElementwiseModels(context);
    attachLinearModels(context);
    attachConvolutionModels(context);
    attachNormModels(context);
    attachAttentionModels(context);
    attachShapeModels(context);
    attachReductionModels(context);
    attachStateModels(context);
    attachLossModels(context);
    attachRandomModels(context);
  });
}
