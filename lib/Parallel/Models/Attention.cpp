// Attention: batch, heads, query rows and the width of the values pass through;
// the gradients of keys and values are sums over rows, and over the query heads
// that share a key head. A rank's own rows of a causal attention say where they
// begin. Keys, and the width that scores sum over, are whole.

#include "Group.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

/// The op on a rank's rows: those of its number along the axes that split them.
template <typename AttentionLike>
static LogicalResult localizeRows(AttentionLike op, OpBuilder &builder,
                                  ValueRange operands, TypeRange types,
                                  SmallVectorImpl<Value> &results) {
  auto local = cast<AttentionLike>(builder.clone(*op));
  local->setOperands(operands);
  for (auto [result, type] : llvm::zip_equal(local->getResults(), types))
    result.setType(type);
  llvm::append_range(results, local->getResults());
  RankedTensorType query = op.getQuery().getType();
  auto sharding = dist::ShardingAttr::of(query);
  if (!op.getCausal() || sharding.getDims()[2].empty())
    return success();
  dist::MeshOp mesh = dist::MeshOp::lookup(op, sharding.getMesh());
  int64_t rows = cast<RankedTensorType>(operands[0].getType()).getDimSize(2);
  SmallVector<NamedAttribute> steps;
  for (StringAttr axis : llvm::reverse(sharding.getDims()[2].getNames())) {
    if (axis == dist::MeshOp::kMicroBatchAxis)
      return op.emitOpError() << "expected causal rows of one micro-batch: "
                                 "those of others have gone";
    steps.emplace_back(axis, builder.getI64IntegerAttr(rows));
    rows *= *mesh.findAxisSize(axis);
  }
  local.setRowStepsAttr(builder.getDictionaryAttr(steps));
  return success();
}

namespace {
/// Batch, groups of heads, heads of a group and rows; everything else is whole.
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
    // Each head of a group adds to the gradients of its key head.
    unsigned inGroup = rule.addFactor(query[1] / key[1], FactorKind::Sum);
    for (unsigned operand = 0; operand < atMask; ++operand)
      rule.operands[operand][0] = {batch};
    for (unsigned operand : {Key, Value})
      rule.operands[operand][1] = rule.results[operand][1] = {groups};
    rule.operands[Query][1] = rule.results[Query][1] = {groups, inGroup};
    for (unsigned operand = Output; operand < atMask; ++operand)
      rule.operands[operand][1] = {groups, inGroup};
    for (unsigned result : {Query, Key, Value})
      rule.results[result][0] = {batch};
    if (!mask.empty() && mask[0] == query[0])
      rule.operands[atMask][0] = {batch};
    if (!mask.empty() && mask[1] == query[1])
      rule.operands[atMask][1] = {groups, inGroup};
    // Each row adds to the gradients of all keys and values.
    unsigned rows = rule.addFactor(query[2], FactorKind::Sum);
    rule.operands[Query][2] = rule.results[Query][2] = {rows};
    for (unsigned operand = Output; operand < atMask; ++operand)
      rule.operands[operand][2] = {rows};
    if (!mask.empty() && mask[2] == query[2])
      rule.operands[atMask][2] = {rows};
    rule.linearGroups = {{Gradient}};
    if (attention.getLogSumExpGradient())
      rule.linearGroups.front().push_back(LogSumExpGradient);
    rule.numbered = {rows};
    rule.indexFree = false;
    return rule;
  }

  LogicalResult localize(Operation *op, OpBuilder &builder, ValueRange operands,
                         TypeRange types,
                         SmallVectorImpl<Value> &results) const {
    return localizeRows(cast<nn::AttentionGradOp>(op), builder, operands, types,
                        results);
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

    unsigned rows = rule.addFactor(query[2]);
    rule.operands[Query][2] = rule.results[0][2] = rule.results[1][2] = {rows};
    if (!mask.empty() && mask[2] == query[2])
      rule.operands[Mask][2] = {rows};

    unsigned width = rule.addFactor(value[3]);
    rule.operands[Value][3] = rule.results[0][3] = {width};
    // The result is linear in the values, but the log-sum-exp knows nothing of
    // them: partial sums of values are reduced before.
    rule.numbered = {rows};
    rule.indexFree = false;
    return rule;
  }

  LogicalResult localize(Operation *op, OpBuilder &builder, ValueRange operands,
                         TypeRange types,
                         SmallVectorImpl<Value> &results) const {
    return localizeRows(cast<nn::AttentionOp>(op), builder, operands, types,
                        results);
  }
};
} // namespace

void parallel::attachAttentionModels(MLIRContext *context) {
  nn::AttentionOp::attachInterface<AttentionRule>(*context);
  nn::AttentionGradOp::attachInterface<AttentionGradRule>(*context);
}
