// Why the operand of a reshard is split, or partial, axis by axis: what ranks
// exchange for it later has its reason from here.

#include "Origins.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_EXPLAINRESHARDSPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
/// One function.
class Explainer {
public:
  Explainer(func::FuncOp function, const Origins &origins)
      : function(function), origins(origins) {}

  /// A reason for each axis of the value, all of them, whatever is done about
  /// it: reshards of one value have the same reasons.
  DictionaryAttr explain(Value value);

private:
  StringAttr findUpdated(Value value);
  std::string describe(Value value);
  std::string explainTerms(Value value, StringAttr axis);
  std::string explainSplit(Value value, unsigned dim, StringAttr axis);

  func::FuncOp function;
  const Origins &origins;
};
} // namespace

static bool isPartial(Value value, StringAttr axis) {
  auto sharding = dist::ShardingAttr::of(value.getType());
  return sharding && sharding.getPartial().contains(axis);
}

/// Through what only moves or rounds a value, to where it comes from.
static Value findSource(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<dist::ReshardOp, nn::CastOp, nn::TransposeOp, nn::ReshapeOp,
             nn::SliceOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The parameter that a value is the gradient of, or a term of it.
static StringAttr findGradient(Value value) {
  llvm::SmallSetVector<Value, 8> reached;
  reached.insert(value);
  for (size_t next = 0; next < reached.size() && next < 16; ++next)
    for (Operation *user : reached[next].getUsers()) {
      if (auto gradient = dyn_cast<nn::GradientOp>(user))
        return gradient.getStateAttr().getAttr();
      if (isa<dist::ReshardOp, dist::AccumulateOp, nn::AddOp, nn::PadOp,
              nn::CastOp>(user))
        reached.insert(user->getResult(0));
    }
  return {};
}

/// The state whose new value it is.
StringAttr Explainer::findUpdated(Value value) {
  for (OpOperand &use : value.getUses()) {
    if (isa<dist::ReshardOp>(use.getOwner()))
      if (StringAttr name = findUpdated(use.getOwner()->getResult(0)))
        return name;
    if (isa<func::ReturnOp>(use.getOwner()))
      if (auto state = function.getResultAttrOfType<FlatSymbolRefAttr>(
              use.getOperandNumber(), nn::kStateAttr))
        return state.getAttr();
  }
  return {};
}

std::string Explainer::describe(Value value) {
  Value source = findSource(value);
  if (auto argument = dyn_cast<BlockArgument>(source)) {
    Origins::Place place =
        Origins::ofArgument(function, argument.getArgNumber());
    return place.name
               ? (place.kind.getValue() + " '" + place.name.getValue() + "'")
                     .str()
               : "an argument";
  }
  if (StringAttr parameter = findGradient(value))
    return ("the gradient of '" + parameter.getValue() + "'").str();
  if (StringAttr state = findUpdated(value))
    return ("the new value of state '" + state.getValue() + "'").str();
  return "the result of " + describeOp(source.getDefiningOp());
}

std::string Explainer::explainTerms(Value value, StringAttr axis) {
  // The op behind linear ones that made terms of it first.
  Operation *op = value.getDefiningOp();
  while (op) {
    auto carries = llvm::find_if(op->getOperands(), [&](Value operand) {
      return isPartial(operand, axis);
    });
    if (carries == op->getOperands().end() || !(*carries).getDefiningOp())
      break;
    op = (*carries).getDefiningOp();
  }
  std::string whose = describe(value);
  auto shardable = dyn_cast_if_present<ShardingRuleOpInterface>(op);
  if (!shardable)
    return "a sum over " + axis.str() + ": each rank has terms of " + whose;
  ShardingRule rule = shardable.getShardingRule();
  // Of its operands that are split in what it sums over, a state says most.
  std::string over;
  int known = -1;
  for (auto [operand, tensor] : llvm::zip(op->getOperands(), rule.operands))
    for (auto [dim, factors] : llvm::enumerate(tensor)) {
      auto sharding = dist::ShardingAttr::of(operand.getType());
      bool sums = llvm::any_of(factors, [&](unsigned factor) {
        return rule.factors[factor].kind != FactorKind::PassThrough;
      });
      if (!sums || !sharding || !sharding.getDims()[dim].contains(axis))
        continue;
      auto argument = dyn_cast<BlockArgument>(findSource(operand));
      Origins::Place place;
      if (argument)
        place = Origins::ofArgument(function, argument.getArgNumber());
      int says = !place.name ? 0 : place.kind.getValue() == "state" ? 2 : 1;
      if (says <= known)
        continue;
      known = says;
      over = "dimension " + std::to_string(dim) + " of " + describe(operand);
      StringRef by = place.name ? origins.find(place, axis) : StringRef();
      if (!by.empty())
        over += " (" + by.str() + ")";
    }
  std::string text = "a sum over " + axis.str() + ": " + describeOp(op) +
                     " sums over " + (over.empty() ? "what is split" : over) +
                     ", which " + axis.str() + " splits";
  if (StringRef input = origins.findInput(axis); known < 1 && !input.empty())
    text += (", as it splits input '" + input + "'").str();
  if (StringAttr parameter = findGradient(value))
    text += ("; for the gradient of '" + parameter.getValue() + "'").str();
  return text;
}

std::string Explainer::explainSplit(Value value, unsigned dim,
                                    StringAttr axis) {
  Value source = findSource(value);
  std::string text = axis.str() + " splits dimension " + std::to_string(dim) +
                     " of " + describe(value);
  if (auto argument = dyn_cast<BlockArgument>(source))
    if (Origins::Place place =
            Origins::ofArgument(function, argument.getArgNumber());
        place.name)
      if (StringRef by = origins.find(place, axis); !by.empty())
        text += " (" + by.str() + ")";
  // It is made where what its update reads is.
  if (StringAttr state = findUpdated(source))
    if (StringRef by = origins.findMoment(state, axis); !by.empty())
      text += (", as its moments (" + by + ")").str();
  return text;
}

DictionaryAttr Explainer::explain(Value value) {
  auto sharding = dist::ShardingAttr::of(value.getType());
  Builder builder(function.getContext());
  NamedAttrList reasons;
  for (StringAttr axis : sharding.getPartial().getNames())
    reasons.set(axis, builder.getStringAttr(explainTerms(value, axis)));
  for (auto [dim, axes] : llvm::enumerate(sharding.getDims()))
    for (StringAttr axis : axes.getNames())
      reasons.set(axis, builder.getStringAttr(explainSplit(value, dim, axis)));
  return reasons.getDictionary(function.getContext());
}

namespace {
struct ExplainReshardsPass
    : impl::ExplainReshardsPassBase<ExplainReshardsPass> {
  using Base::Base;

  void runInOrder() override {
    if (!getOperation()->hasAttr(dist::kOriginsAttr))
      return; // nobody asks
    Origins origins(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      Explainer explainer(function, origins);
      function.walk([&](dist::ReshardOp reshard) {
        reshard->setAttr(dist::kReasonsAttr,
                         explainer.explain(reshard.getInput()));
      });
    }
  }
};
} // namespace
} // namespace accel::parallel
