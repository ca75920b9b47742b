// Attaches the models of all op groups when the nn dialect is loaded.

#include "lib/Target/Element/Models.h"

#include "Group.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

void element::registerElementSourceModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    attachElementwiseModels(context);
    attachDynamicCodeModels(context);
    attachShapeModels(context);
    attachRandomModels(context);
    attachReductionModels(context);
    attachNormModels(context);
    attachStateModels(context);
  });
}
