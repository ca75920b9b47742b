// Losses: rows pass through, classes are whole.

#include "Group.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

namespace {
struct CrossEntropyRule
    : ShardingRuleOpInterface::ExternalModel<CrossEntropyRule,
                                             nn::CrossEntropyOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto loss = cast<nn::CrossEntropyOp>(op);
    auto rule = ShardingRule::getWhole(op);
    for (auto [dim, size] :
         llvm::enumerate(loss.getLabels().getType().getShape())) {
      rule.passThrough(size, 0, dim, dim);
      rule.operands[1][dim] = rule.results[0][dim];
    }
    return rule;
  }
};
} // namespace

void parallel::attachLossModels(MLIRContext *context) {
  nn::CrossEntropyOp::attachInterface<CrossEntropyRule>(*context);
}
