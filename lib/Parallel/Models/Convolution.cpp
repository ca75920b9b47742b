// Convolutions: samples, groups and channels are factors, as those of matrix
// products are; space has none, so every rank has all of it.

#include "Group.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

namespace {
/// The leading dimensions of a tensor, in their order; without groups `Group`
/// has none.
enum Leading { Sample, Group, OutChannel, InChannel };
constexpr Leading kInput[] = {Sample, Group, InChannel};
constexpr Leading kWeight[] = {Group, OutChannel, InChannel};
constexpr Leading kOutput[] = {Sample, Group, OutChannel};

/// The rule of the product of two of these tensors, summed into the third over
/// the dimension that this one lacks.
template <typename Op>
ShardingRule getRule(Op op, ArrayRef<Leading> lhs, ArrayRef<Leading> rhs,
                     ArrayRef<Leading> result) {
  auto rule = ShardingRule::getWhole(op);
  bool hasGroups = op.getType().getRank() == int64_t(op.getSizes().size()) + 3;
  std::optional<unsigned> factors[4];
  auto cover = [&](ShardingRule::Tensor &tensor, Value value,
                   ArrayRef<Leading> leading) {
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(value.getType()).getShape();
    unsigned dim = 0;
    for (Leading each : leading) {
      if (each == Group && !hasGroups)
        continue;
      if (!factors[each])
        factors[each] =
            rule.addFactor(shape[dim], llvm::is_contained(result, each)
                                           ? FactorKind::PassThrough
                                           : FactorKind::Sum);
      tensor[dim++] = {*factors[each]};
    }
  };
  cover(rule.operands[0], op.getLhs(), lhs);
  cover(rule.operands[1], op.getRhs(), rhs);
  cover(rule.results[0], op.getResult(), result);
  rule.linearGroups = {{0}, {1}};
  return rule;
}

struct ConvRule : ShardingRuleOpInterface::ExternalModel<ConvRule, nn::ConvOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return getRule(cast<nn::ConvOp>(op), kInput, kWeight, kOutput);
  }
};
struct ConvInputGradRule
    : ShardingRuleOpInterface::ExternalModel<ConvInputGradRule,
                                             nn::ConvInputGradOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return getRule(cast<nn::ConvInputGradOp>(op), kOutput, kWeight, kInput);
  }
};
struct ConvWeightGradRule
    : ShardingRuleOpInterface::ExternalModel<ConvWeightGradRule,
                                             nn::ConvWeightGradOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return getRule(cast<nn::ConvWeightGradOp>(op), kInput, kOutput, kWeight);
  }
};
} // namespace

void parallel::attachConvolutionModels(MLIRContext *context) {
  nn::ConvOp::attachInterface<ConvRule>(*context);
  nn::ConvInputGradOp::attachInterface<ConvInputGradRule>(*context);
  nn::ConvWeightGradOp::attachInterface<ConvWeightGradRule>(*context);
}
