// Attaches the models of all op groups when the nn dialect is loaded.

#include "lib/Plan/Models.h"

#include "Group.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

void plan::registerKernelSourceModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    attachElementwiseModels(context);
    attachShapeModels(context);
    attachReductionModels(context);
  });
}
