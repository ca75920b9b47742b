// Attention: batch, heads and the width of the values pass through. Query rows
// do if nothing depends on their number; keys, and the width that scores sum
// over, are whole.

#include "Group.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

namespace {
/// Batch and groups of heads pass through; everything else is whole.
struct AttentionGradRule
    : ShardingRuleOpInterface::ExternalModel<AttentionGradRule,
                                             nn::AttentionGradOp> {
  ShardingRule getShardingRule(Operation *op) const {
    enum { Query, Key, Value, Output, LogSumExp, Gradient, LogSumExpGradient };
    auto attention = cast<nn::AttentionGradOp>(op);
    auto rule = ShardingRule::getWhole(op);
    ArrayRef<int64_t> query = attention.getQuery().getType().getShape();
    ArrayRef<int64_t> key = attention.getKey().getType().getShape();
    ArrayRef<int64_t> mask;
    unsigned atMask = op->getNumOperands();
    if (attention.getMask()) {
      mask = attention.getMask().getType().getShape();
      --atMask;
    }

    unsigned batch = rule.addFactor(query[0]);
    unsigned groups = rule.addFactor(key[1]);
    for (unsigned operand = 0; operand < atMask; ++operand)
      rule.operands[operand][0] = {batch};
    for (unsigned operand : {Key, Value})
      rule.operands[operand][1] = rule.results[operand][1] = {groups};
    // A group of heads shares its key head: what splits it would leave the
    // gradients of keys and values partial, but not that of the query. So the
    // rest of the heads, their minor part, has no factor.
    rule.operands[Query][1] = {groups};
    for (unsigned operand = Output; operand < atMask; ++operand)
      rule.operands[operand][1] = {groups};
    rule.results[Query][1] = {groups};
    for (unsigned result : {Query, Key, Value})
      rule.results[result][0] = {batch};
    if (!mask.empty() && mask[0] == query[0])
      rule.operands[atMask][0] = {batch};
    if (!mask.empty() && mask[1] == query[1])
      rule.operands[atMask][1] = {groups};
    rule.linearGroups = {{Gradient}};
    if (attention.getLogSumExpGradient())
      rule.linearGroups.front().push_back(LogSumExpGradient);
    return rule;
  }
};

struct AttentionRule
    : ShardingRuleOpInterface::ExternalModel<AttentionRule, nn::AttentionOp> {
  ShardingRule getShardingRule(Operation *op) const {
    enum { Query, Key, Value, Mask };
    auto attention = cast<nn::AttentionOp>(op);
    auto rule = ShardingRule::getWhole(op);
    ArrayRef<int64_t> query = attention.getQuery().getType().getShape();
    ArrayRef<int64_t> value = attention.getValue().getType().getShape();
    ArrayRef<int64_t> mask;
    if (attention.getMask())
      mask = attention.getMask().getType().getShape();

    unsigned batch = rule.addFactor(query[0]);
    for (unsigned operand : {Query, Key, Value})
      rule.operands[operand][0] = {batch};
    rule.results[0][0] = rule.results[1][0] = {batch};
    if (!mask.empty() && mask[0] == query[0])
      rule.operands[Mask][0] = {batch};

    // Head h reads key head h / (H / G): whole groups of heads move together.
    unsigned groups = rule.addFactor(value[1]);
    unsigned inGroup = rule.addFactor(query[1] / value[1]);
    rule.operands[Query][1] = rule.results[0][1] =
        rule.results[1][1] = {groups, inGroup};
    rule.operands[Key][1] = rule.operands[Value][1] = {groups};
    if (!mask.empty() && mask[1] == query[1])
      rule.operands[Mask][1] = {groups, inGroup};

    // A causal mask counts rows.
    if (!attention.getCausal()) {
      unsigned rows = rule.addFactor(query[2]);
      rule.operands[Query][2] = rule.results[0][2] =
          rule.results[1][2] = {rows};
      if (!mask.empty() && mask[2] == query[2])
        rule.operands[Mask][2] = {rows};
    }

    unsigned width = rule.addFactor(value[3]);
    rule.operands[Value][3] = rule.results[0][3] = {width};
    // The result is linear in the values, but the log-sum-exp knows nothing of
    // them: partial sums of values are reduced before.
    return rule;
  }
};
} // namespace

void parallel::attachAttentionModels(MLIRContext *context) {
  nn::AttentionOp::attachInterface<AttentionRule>(*context);
  nn::AttentionGradOp::attachInterface<AttentionGradRule>(*context);
}
