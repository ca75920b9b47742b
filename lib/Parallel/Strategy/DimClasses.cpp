// Joins dimensions by a union of sets, op by op, and adds up what the ops cost.

#include "DimClasses.h"

#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/Cost.h"
#include "dialects/NN/NN.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

static int64_t getSize(Value value, unsigned dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

DimClasses::DimClasses(func::FuncOp function, const FusedDims *fused,
                       dist::MeshOp mesh)
    : fused(fused) {
  if (mesh) {
    ranks = countTensorRanks(mesh);
    keyRanks = mesh.findAxisSize(kKeyHeadsAxis).value_or(1);
  }
  auto add = [&](Value value) {
    auto tensor = cast<RankedTensorType>(value.getType());
    firstDims[value] = parents.size();
    for (int64_t size : tensor.getShape()) {
      parents.push_back(parents.size());
      classes.emplace_back().size = size;
    }
  };
  llvm::for_each(function.getArguments(), add);
  for (Operation &op : function.front())
    llvm::for_each(op.getResults(), add);
  for (Operation &op : function.front())
    join(&op);
  joinParts();
  // An axis splits one dimension of a tensor.
  for (auto [value, first] : firstDims) {
    llvm::SmallDenseSet<unsigned> seen;
    for (unsigned dim = 0,
                  rank = cast<RankedTensorType>(value.getType()).getRank();
         dim < rank; ++dim)
      if (unsigned number = find(value, dim);
          getSize(value, dim) > 1 && !seen.insert(number).second)
        classes[number].size = 1;
  }
  for (Operation &op : function.front())
    weigh(&op);
}

unsigned DimClasses::findRoot(unsigned dim) const {
  while (parents[dim] != dim)
    dim = parents[dim] = parents[parents[dim]];
  return dim;
}

unsigned DimClasses::find(Value value, unsigned dim) const {
  return findRoot(firstDims.lookup(value) + dim);
}

void DimClasses::join(unsigned dim, unsigned other) {
  dim = findRoot(dim);
  other = findRoot(other);
  if (dim == other)
    return;
  parents[other] = dim;
  classes[dim].size = std::gcd(classes[dim].size, classes[other].size);
}

namespace {
/// A dimension of an operand or a result, and the factors of it.
struct OpDim {
  Value value;
  unsigned dim;
  const ShardingRule::Dim *factors;
  bool isOperand;
};
} // namespace

/// Whether the elements along a dimension are made where they are wanted: of a
/// constant, or of what a broadcast repeats. What reads it is tied to nothing
/// by it, though many may read the one op that is left of equal ones.
static bool isMadeAnywhere(Value value, unsigned dim) {
  auto shardable =
      dyn_cast_if_present<ShardingRuleOpInterface>(value.getDefiningOp());
  if (!shardable)
    return false;
  ShardingRule rule = shardable.getShardingRule();
  const ShardingRule::Dim &made =
      rule.results[cast<OpResult>(value).getResultNumber()][dim];
  // What is cut or joined comes from somewhere.
  if (made.empty() && value.getDefiningOp()->getNumOperands() > 0)
    return false;
  return llvm::none_of(made, [&](unsigned factor) {
    return llvm::any_of(
        rule.operands, [&](const ShardingRule::Tensor &operand) {
          return llvm::any_of(operand, [&](const ShardingRule::Dim &of) {
            return llvm::is_contained(of, factor);
          });
        });
  });
}

static SmallVector<OpDim> getDims(Operation *op, const ShardingRule &rule) {
  SmallVector<OpDim> dims;
  for (auto [operand, tensor] : llvm::zip(op->getOperands(), rule.operands))
    for (auto [dim, factors] : llvm::enumerate(tensor))
      if (!isMadeAnywhere(operand, dim))
        dims.push_back({operand, unsigned(dim), &factors, true});
  for (auto [result, tensor] : llvm::zip(op->getResults(), rule.results))
    for (auto [dim, factors] : llvm::enumerate(tensor))
      dims.push_back({result, unsigned(dim), &factors, false});
  return dims;
}

/// The op's rule; query heads by themselves where ranks would share key heads.
ShardingRule DimClasses::getRule(ShardingRuleOpInterface op) const {
  enum { Query, Key };
  ShardingRule rule = op.getShardingRule();
  if (!isa<nn::AttentionOp, nn::AttentionGradOp>(op))
    return rule;
  ShardingRule::Dim heads = rule.operands[Query][1],
                    keys = rule.operands[Key][1];
  int64_t groups = rule.factors[keys.front()].size;
  if (heads.size() != 2 || groups % ranks == 0 ||
      (groups != 1 && groups != keyRanks))
    return rule;
  const ShardingRule::Factor &inGroup = rule.factors[heads.back()];
  unsigned own = rule.addFactor(groups * inGroup.size, inGroup.kind);
  for (auto *tensors : {&rule.operands, &rule.results})
    for (ShardingRule::Tensor &tensor : *tensors)
      for (ShardingRule::Dim &dim : tensor)
        if (dim == heads)
          dim = {own};
  return rule;
}

void DimClasses::join(Operation *op) {
  if (auto constraint = dyn_cast<dist::ConstraintOp>(op)) {
    for (unsigned dim = 0, rank = constraint.getType().getRank(); dim < rank;
         ++dim)
      join(find(constraint.getInput(), dim), find(constraint.getResult(), dim));
    return;
  }
  auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
  if (!shardable)
    return;
  ShardingRule rule = getRule(shardable);
  SmallVector<std::optional<unsigned>> of(rule.factors.size());
  for (const OpDim &each : getDims(op, rule)) {
    if (each.factors->empty())
      continue;
    unsigned factor = each.factors->front();
    unsigned dim = find(each.value, each.dim);
    classes[dim].size = std::gcd(classes[dim].size, rule.factors[factor].size);
    if (of[factor])
      join(*of[factor], dim);
    else
      of[factor] = dim;
  }
}

/// A rank has its share of each part.
void DimClasses::joinParts() {
  if (!fused)
    return;
  for (const FusedDims::Link &link : fused->getLinks()) {
    join(find(link.whole, link.dim), find(link.part, link.dim));
    int64_t &size = classes[find(link.whole, link.dim)].size;
    for (int64_t part : fused->getParts(link.whole, link.dim))
      size = std::gcd(size, part);
  }
}

/// An all-reduce moves its tensor twice.
void DimClasses::makeSum(Value value, unsigned number) {
  if (sums.insert({value, number}).second)
    classes[number].bytes += 2 * getTensorBytes(value.getType());
}

/// A sum waits while terms go one way; where they would go several, it is made.
void DimClasses::addTerms(Value result, unsigned number) {
  if (result.hasOneUse())
    terms[result].push_back(number);
  else if (!result.use_empty())
    makeSum(result, number);
}

/// Where an op is linear in terms, sums wait; elsewhere they are made.
void DimClasses::addSums(Operation *op, const ShardingRule &rule) {
  // By classes, the operands that are terms over them.
  llvm::SmallMapVector<unsigned, SmallVector<unsigned, 2>, 4> waiting;
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (auto found = terms.find(operand); found != terms.end())
      for (unsigned number : found->second)
        if (auto &those = waiting[number];
            those.empty() || those.back() != index)
          those.push_back(index);
  for (const auto &[number, those] : waiting) {
    if (llvm::is_contained(rule.linearGroups, those))
      for (Value result : op->getResults())
        addTerms(result, number);
    else
      for (unsigned index : those)
        makeSum(op->getOperand(index), number);
  }
}

/// Whether what a factor splits is not in ranges of any result: it is the minor
/// part of a dimension, as the width of heads is where they are joined.
static bool isMinor(const ShardingRule &rule, unsigned factor) {
  bool isFound = false;
  for (const ShardingRule::Tensor &result : rule.results)
    for (const ShardingRule::Dim &dim : result) {
      auto *first = llvm::find_if(
          dim, [&](unsigned each) { return rule.factors[each].size > 1; });
      if (first != dim.end() && *first == factor)
        return false;
      isFound |= llvm::is_contained(dim, factor);
    }
  return isFound;
}

void DimClasses::weigh(Operation *op) {
  auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
  if (!shardable) {
    if (!isa<dist::ConstraintOp>(op))
      addSums(op, ShardingRule());
    return;
  }
  ShardingRule rule = getRule(shardable);
  addSums(op, rule);
  SmallVector<OpDim> dims = getDims(op, rule);
  // The class of each factor that stands first somewhere.
  llvm::SmallDenseMap<unsigned, unsigned> of;
  llvm::SmallSetVector<unsigned, 4> members;
  for (const OpDim &each : dims)
    if (getSize(each.value, each.dim) > 1 && !each.factors->empty()) {
      unsigned number = find(each.value, each.dim);
      of[each.factors->front()] = number;
      members.insert(number);
    }
  int64_t flops = 0;
  if (auto cost = dyn_cast<CostOpInterface>(op))
    flops = cost.getFlops();
  for (auto [factor, number] : of) {
    classes[number].flops += flops;
    auto has = [factor = factor](const ShardingRule::Tensor &dims) {
      return llvm::any_of(dims, [&](const ShardingRule::Dim &dim) {
        return llvm::is_contained(dim, factor);
      });
    };
    if (rule.factors[factor].kind == FactorKind::Sum) {
      for (auto [result, dims] : llvm::zip(op->getResults(), rule.results))
        if (!has(dims))
          addTerms(result, number);
    } else if (rule.factors[factor].kind == FactorKind::Inside) {
      // A few numbers for each row.
      for (Value operand : op->getOperands().take_front())
        classes[number].bytes +=
            6 * getTensorBytes(operand.getType()) / rule.factors[factor].size;
    } else if (rule.factors[factor].kind == FactorKind::Exchanged) {
      // Who has which is another strategy's affair (dist-place-experts).
      for (const OpDim &each : dims)
        if (llvm::is_contained(*each.factors, factor))
          classes[number].bytes += getTensorBytes(each.value.getType());
    } else if (rule.factors[factor].kind != FactorKind::PassThrough)
      for (Value result : op->getResults())
        makeSum(result, number);
  }
  // What is wanted whole is gathered; a result that is whole is cut for
  // nothing.
  for (const OpDim &each : dims) {
    if (!each.isOperand || getSize(each.value, each.dim) == 1 ||
        !(each.factors->empty() || isMinor(rule, each.factors->front())))
      continue;
    unsigned number = find(each.value, each.dim);
    if (!fused || !fused->cuts(op, each.dim))
      classes[number].bytes += getTensorBytes(each.value.getType());
    members.insert(number);
  }
  addGroup(members.getArrayRef());
}

void DimClasses::addGroup(ArrayRef<unsigned> members) {
  if (members.size() < 2)
    return;
  for (unsigned number : members)
    classes[number].groups.push_back(groups.size());
  groups.emplace_back(members);
}
