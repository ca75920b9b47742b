// Attaches the models of all op groups when the nn dialect is loaded.

#include "lib/Target/CPU/Models.h"

#include "Group.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

void cpu::registerElementSourceModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    attachElementwiseModels(context);
    attachShapeModels(context);
    attachRandomModels(context);
    attachReductionModels(context);
    attachNormModels(context);
    attachStateModels(context);
  });
}
