// Elementwise ops: every dimension is a factor that passes through. Which
// operands they are linear in is a property of the function.

#include "Zeros.h"
#include "accel/Parallel/RuleModels.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

namespace {
/// Linear groups as bit masks of operands, one template argument each.
template <typename Op, unsigned... Groups>
struct ElementwiseRule
    : ShardingRuleOpInterface::ExternalModel<ElementwiseRule<Op, Groups...>,
                                             Op> {
  ShardingRule getShardingRule(Operation *op) const {
    auto rule = ShardingRule::getWhole(op);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    for (auto [dim, size] : llvm::enumerate(type.getShape())) {
      unsigned factor = rule.addFactor(size);
      for (ShardingRule::Tensor &operand : rule.operands)
        operand[dim] = {factor};
      rule.results[0][dim] = {factor};
    }
    (addGroup(rule, Groups), ...);
    return rule;
  }

  static void addGroup(ShardingRule &rule, unsigned mask) {
    auto &group = rule.linearGroups.emplace_back();
    for (unsigned operand = 0; operand < 3; ++operand)
      if (mask & (1u << operand))
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
    ShardingRule rule =
        ElementwiseRule<nn::SelectOp, 0b110>().getShardingRule(op);
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
    auto from = dyn_cast<FloatType>(getElementTypeOrSelf(op->getOperand(0)));
    auto to = dyn_cast<FloatType>(getElementTypeOrSelf(op->getResult(0)));
    if (from && to && from.getWidth() < to.getWidth())
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

template <typename... Ops> void attachNonLinear(MLIRContext *context) {
  (Ops::template attachInterface<ElementwiseRule<Ops>>(*context), ...);
}
} // namespace

void parallel::attachElementwiseRules(MLIRContext *context) {
  using namespace nn;
  // What comes after a gradient reads the finished one.
  attachNonLinear<AbsOp, ExpOp, LogOp, Log1pOp, SqrtOp, RsqrtOp, ReciprocalOp,
                  TanhOp, ErfOp, SigmoidOp, ReluOp, SinOp, CosOp, FloorOp,
                  NotOp, IsNanOp, GeluOp, ModOp, PowOp, MinOp, MaxOp, AndOp,
                  OrOp, CompareOp, RandomUniformOp>(context);
  NegOp::attachInterface<ElementwiseRule<NegOp, 0b1>>(*context);
  AddOp::attachInterface<ElementwiseRule<AddOp, 0b11>>(*context);
  SubOp::attachInterface<ElementwiseRule<SubOp, 0b11>>(*context);
  MulOp::attachInterface<ElementwiseRule<MulOp, 0b01, 0b10>>(*context);
  SelectOp::attachInterface<SelectRule>(*context);
  DivOp::attachInterface<DivRule>(*context);
  CastOp::attachInterface<CastRule>(*context);
  GradientOp::attachInterface<GradientRule>(*context);
}
