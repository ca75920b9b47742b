// Attaches the models of all op groups when the nn dialect is loaded.

#include "lib/Parallel/Models.h"

#include "Group.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

void parallel::registerShardingRuleModels(DialectRegistry &registry) {
  // The local forms of some ops contain collectives.
  registry.insert<dist::DistDialect>();
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    attachElementwiseModels(context);
    attachShapeModels(context);
    attachLookupModels(context);
    attachLinearModels(context);
    attachConvolutionModels(context);
    attachReductionModels(context);
    attachNormModels(context);
    attachAttentionModels(context);
    attachLossModels(context);
    attachStateModels(context);
  });
}
