// Softmax, and the loss that is made of it: on parts of the classes they are
// what they are by definition (ClassRows.h).

#include "ClassRows.h"
#include "Group.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

namespace {
struct SoftmaxRule
    : ShardingRuleOpInterface::ExternalModel<SoftmaxRule, nn::SoftmaxOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto softmax = cast<nn::SoftmaxOp>(op);
    auto rule = ShardingRule::getWhole(op);
    rule.indexFree = false;
    for (auto [dim, size] :
         llvm::enumerate(softmax.getInput().getType().getShape())) {
      auto kind = dim == softmax.getDim() ? FactorKind::Inside
                                          : FactorKind::PassThrough;
      rule.operands[0][dim] =
          rule.results[0][dim] = {rule.addFactor(size, kind)};
    }
    return rule;
  }

  LogicalResult localize(Operation *op, OpBuilder &builder, ValueRange operands,
                         TypeRange types,
                         SmallVectorImpl<Value> &results) const {
    auto softmax = cast<nn::SoftmaxOp>(op);
    int64_t dim = softmax.getDim();
    auto type = cast<RankedTensorType>(types[0]);
    if (type.getDimSize(dim) == softmax.getType().getDimSize(dim)) {
      results.push_back(nn::SoftmaxOp::create(
          builder, op->getLoc(), type, operands[0], dim, softmax.getLog()));
      return success();
    }
    auto sharding = dist::ShardingAttr::of(softmax.getInput().getType());
    parallel::ClassRows rows{builder,
                             op->getLoc(),
                             dim,
                             softmax.getType().getDimSize(dim),
                             sharding.getMesh(),
                             sharding.getDims()[dim]};
    results.push_back(rows.defineSoftmax(operands[0], softmax.getLog()));
    return success();
  }
};

struct CrossEntropyRule
    : ShardingRuleOpInterface::ExternalModel<CrossEntropyRule,
                                             nn::CrossEntropyOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto loss = cast<nn::CrossEntropyOp>(op);
    auto rule = ShardingRule::getWhole(op);
    rule.indexFree = false;
    for (auto [dim, size] :
         llvm::enumerate(loss.getLabels().getType().getShape())) {
      rule.passThrough(size, 0, dim, dim);
      rule.operands[1][dim] = rule.results[0][dim];
    }
    rule.operands[0].back() = rule.numbered = {rule.addFactor(
        loss.getLogits().getType().getShape().back(), FactorKind::Inside)};
    return rule;
  }

  LogicalResult localize(Operation *op, OpBuilder &builder, ValueRange operands,
                         TypeRange types,
                         SmallVectorImpl<Value> &results) const {
    auto loss = cast<nn::CrossEntropyOp>(op);
    RankedTensorType whole = loss.getLogits().getType();
    int64_t dim = whole.getRank() - 1, classes = whole.getDimSize(dim),
            ownClasses =
                cast<RankedTensorType>(operands[0].getType()).getDimSize(dim);
    if (ownClasses == classes) {
      results.push_back(nn::CrossEntropyOp::create(
          builder, op->getLoc(), types[0], operands[0], operands[1],
          loss.getIgnoreIndexAttr()));
      return success();
    }
    auto sharding = dist::ShardingAttr::of(whole);
    parallel::ClassRows rows{
        builder, op->getLoc(),       dim,
        classes, sharding.getMesh(), sharding.getDims()[dim]};
    results.push_back(rows.defineCrossEntropy(operands[0], operands[1],
                                              loss.getIgnoreIndex()));
    return success();
  }
};
} // namespace

void parallel::attachLossModels(MLIRContext *context) {
  nn::SoftmaxOp::attachInterface<SoftmaxRule>(*context);
  nn::CrossEntropyOp::attachInterface<CrossEntropyRule>(*context);
}
