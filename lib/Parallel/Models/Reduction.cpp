// Reductions: dimensions that stay pass through; over those that go, sums,
// maxima and minima are partial where they are sharded. What is chosen along
// one needs all of it.

#include "Group.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

namespace {
struct ReduceRule
    : ShardingRuleOpInterface::ExternalModel<ReduceRule, nn::ReduceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto reduce = cast<nn::ReduceOp>(op);
    auto rule = ShardingRule::getWhole(op);
    unsigned kept = 0;
    for (auto [dim, size] :
         llvm::enumerate(reduce.getInput().getType().getShape())) {
      if (!llvm::is_contained(reduce.getDims(), static_cast<int64_t>(dim))) {
        rule.passThrough(size, 0, dim, kept++);
        continue;
      }
      // Partial products have no collective: their dimension stays whole.
      switch (reduce.getKind()) {
      case nn::ReductionKind::sum:
        rule.operands[0][dim] = {rule.addFactor(size, FactorKind::Sum)};
        break;
      case nn::ReductionKind::max:
        rule.operands[0][dim] = {rule.addFactor(size, FactorKind::Max)};
        break;
      case nn::ReductionKind::min:
        rule.operands[0][dim] = {rule.addFactor(size, FactorKind::Min)};
        break;
      case nn::ReductionKind::prod:
        break;
      }
    }
    if (reduce.getKind() == nn::ReductionKind::sum)
      rule.linearGroups = {{0}};
    return rule;
  }
};

struct CumsumRule
    : ShardingRuleOpInterface::ExternalModel<CumsumRule, nn::CumsumOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto cumsum = cast<nn::CumsumOp>(op);
    auto rule = ShardingRule::getWhole(op);
    for (auto [dim, size] :
         llvm::enumerate(cumsum.getInput().getType().getShape()))
      if (dim != cumsum.getDim())
        rule.passThrough(size, 0, dim, dim);
    rule.linearGroups = {{0}};
    return rule;
  }
};
struct TopKRule : ShardingRuleOpInterface::ExternalModel<TopKRule, nn::TopKOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto rule = ShardingRule::getWhole(op);
    ArrayRef<int64_t> rows =
        cast<nn::TopKOp>(op).getInput().getType().getShape().drop_back();
    for (auto [dim, size] : llvm::enumerate(rows))
      rule.passThrough(size, 0, dim, dim);
    return rule;
  }
};
} // namespace

void parallel::attachReductionModels(MLIRContext *context) {
  nn::TopKOp::attachInterface<TopKRule>(*context);
  nn::ReduceOp::attachInterface<ReduceRule>(*context);
  nn::CumsumOp::attachInterface<CumsumRule>(*context);
}
