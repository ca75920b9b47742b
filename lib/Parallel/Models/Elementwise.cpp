// Elementwise ops: every dimension is a factor that passes through. Which
// operands they are linear in is a property of the function.

#include "Group.h"
#include "Zeros.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/Casts.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

namespace {
template <typename Op>
struct ElementwiseRule
    : ShardingRuleOpInterface::ExternalModel<ElementwiseRule<Op>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    auto rule = ShardingRule::getWhole(op);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    for (auto [dim, size] : llvm::enumerate(type.getShape())) {
      unsigned factor = rule.addFactor(size);
      for (ShardingRule::Tensor &operand : rule.operands)
        operand[dim] = {factor};
      rule.results[0][dim] = {factor};
    }
    if constexpr (Op::template hasTrait<nn::Elementwise>())
      for (unsigned group : Op::kFacts.linearGroups)
        addGroup(rule, group);
    return rule;
  }

  static void addGroup(ShardingRule &rule, unsigned bits) {
    if (bits == 0)
      return;
    auto &group = rule.linearGroups.emplace_back();
    for (unsigned operand = 0; operand < rule.operands.size(); ++operand)
      if (bits & (1u << operand))
        group.push_back(operand);
  }
};

/// Linear in the dividend, except on integers, whose quotients are rounded.
struct DivRule : ShardingRuleOpInterface::ExternalModel<DivRule, nn::DivOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = ElementwiseRule<nn::DivOp>().getShardingRule(op);
    if (isa<FloatType>(getElementTypeOrSelf(op->getResult(0))))
      rule.linearGroups.push_back({0});
    return rule;
  }
};

/// Linear in what it selects from; in one of the two where the other is zeros
/// (the gradient of where, relu, clamp).
struct SelectRule
    : ShardingRuleOpInterface::ExternalModel<SelectRule, nn::SelectOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = ElementwiseRule<nn::SelectOp>().getShardingRule(op);
    if (parallel::isZeros(op->getOperand(2)))
      rule.linearGroups.push_back({1});
    if (parallel::isZeros(op->getOperand(1)))
      rule.linearGroups.push_back({2});
    return rule;
  }
};

/// A cast rounds, and the sum of rounded terms is not the rounded sum. One to a
/// wider type loses nothing: the sum of widened terms is the wide sum.
struct CastRule : ShardingRuleOpInterface::ExternalModel<CastRule, nn::CastOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = ElementwiseRule<nn::CastOp>().getShardingRule(op);
    if (isExact(cast<nn::CastOp>(op)))
      rule.linearGroups.push_back({0});
    return rule;
  }
};

/// The backward's shardings end here, and the update's begin.
struct GradientRule
    : ShardingRuleOpInterface::ExternalModel<GradientRule, nn::GradientOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = ElementwiseRule<nn::GradientOp>().getShardingRule(op);
    rule.spreadsToOperands = false;
    return rule;
  }
};

/// Linear in nothing, so that terms are added up before it; on one rank there
/// is nothing left of it.
struct CompleteRule
    : ShardingRuleOpInterface::ExternalModel<CompleteRule, nn::CompleteOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = ElementwiseRule<nn::CompleteOp>().getShardingRule(op);
    rule.indexFree = false;
    return rule;
  }

  LogicalResult localize(Operation *, OpBuilder &, ValueRange operands,
                         TypeRange, SmallVectorImpl<Value> &results) const {
    results.push_back(operands[0]);
    return success();
  }
};

/// Each rank's piece, or terms of it, goes to the rank of the other stage that
/// has the same place in all other axes.
struct CutRule : ShardingRuleOpInterface::ExternalModel<CutRule, nn::CutOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = ElementwiseRule<nn::CutOp>().getShardingRule(op);
    rule.linearGroups.push_back({0});
    rule.passesMicroBatches = false;
    return rule;
  }
};

/// The model of an op: its own, or that of all elementwise ops.
template <typename Op> struct RuleOf { using type = ElementwiseRule<Op>; };
template <> struct RuleOf<nn::DivOp> { using type = DivRule; };
template <> struct RuleOf<nn::SelectOp> { using type = SelectRule; };
template <> struct RuleOf<nn::CastOp> { using type = CastRule; };
} // namespace

void parallel::attachElementwiseModels(MLIRContext *context) {
  nn::forEachElementwiseOp([&](auto tag) {
    using Op = typename decltype(tag)::type;
    Op::template attachInterface<typename RuleOf<Op>::type>(*context);
  });
  // What comes after a gradient reads the finished one.
  nn::GradientOp::attachInterface<GradientRule>(*context);
  nn::CompleteOp::attachInterface<CompleteRule>(*context);
  nn::CutOp::attachInterface<CutRule>(*context);
}
