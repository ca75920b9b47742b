// Attaches the rules of all op groups when the nn dialect is loaded.

#include "accel/Parallel/RuleModels.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

void parallel::registerShardingRuleModels(DialectRegistry &registry) {
  // The local forms of some ops contain collectives.
  registry.insert<dist::DistDialect>();
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    attachElementwiseRules(context);
    attachShapeRules(context);
    attachLinearRules(context);
    attachReductionRules(context);
    attachNormRules(context);
    attachAttentionRules(context);
    attachLossRules(context);
    attachStateRules(context);
  });
}
