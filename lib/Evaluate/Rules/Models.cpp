// Registration of all Evaluate models.

#include "accel/Evaluate/Models.h"

#include "lib/Evaluate/Rules/Rules.h"

using namespace accel;

void evaluate::registerEvaluateModels(mlir::DialectRegistry &registry) {
  registry.addExtension(+[](mlir::MLIRContext *context, nn::NNDialect *) {
    attachElementwiseModels(context);
    attachLinearModels(context);
    attachNormModels(context);
    attachAttentionModels(context);
    attachShapeModels(context);
    attachReductionModels(context);
    attachStateModels(context);
    attachLossModels(context);
    attachRandomModels(context);
  });
}
