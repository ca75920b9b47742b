// Normalisations: rows pass through, what is normalised over is whole.

#include "Group.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

namespace {
struct LayerNormRule
    : ShardingRuleOpInterface::ExternalModel<LayerNormRule, nn::LayerNormOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto norm = cast<nn::LayerNormOp>(op);
    auto rule = ShardingRule::getWhole(op);
    ArrayRef<int64_t> rows =
        norm.getInput().getType().getShape().take_front(norm.getDim());
    for (auto [dim, size] : llvm::enumerate(rows))
      rule.passThrough(size, 0, dim, dim);
    return rule;
  }
};
} // namespace

void parallel::attachNormModels(MLIRContext *context) {
  nn::LayerNormOp::attachInterface<LayerNormRule>(*context);
}
