// Translates between axes of dimensions and axes of factors, and settles which
// factor of an op gets an axis.

#include "FactorAxes.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

size_t parallel::splitOverFactors(
    dist::MeshOp mesh, const ShardingRule &rule, const ShardingRule::Dim &dim,
    ArrayRef<StringAttr> axes, function_ref<void(unsigned, StringAttr)> sink) {
  size_t placed = 0, at = 0;
  if (dim.empty())
    return 0;
  int64_t rest = rule.factors[dim[0]].size;
  for (StringAttr axis : axes) {
    int64_t size = *mesh.findAxisSize(axis);
    while (rest == 1 && size > 1 && at + 1 < dim.size())
      rest = rule.factors[dim[++at]].size;
    if (rest == 0 || rest % size != 0)
      break;
    rest /= size;
    sink(dim[at], axis);
    ++placed;
  }
  return placed;
}

AxisList parallel::joinFactors(const ShardingRule::Dim &dim,
                               ArrayRef<AxisList> factorAxes) {
  AxisList axes;
  for (unsigned factor : dim)
    llvm::append_range(axes, factorAxes[factor]);
  return axes;
}

std::optional<SmallVector<AxisLists>>
parallel::findOperandAxes(dist::MeshOp mesh, const ShardingRule &rule,
                          ArrayRef<AxisList> result) {
  SmallVector<AxisList> factorAxes(rule.factors.size());
  // How many axes of a tensor's dimensions its factors have a place for.
  auto spread = [&](const ShardingRule::Tensor &dims, ArrayRef<AxisList> axes,
                    MutableArrayRef<AxisList> factors) {
    return llvm::all_of(llvm::zip(dims, axes), [&](auto each) {
      auto &[dim, own] = each;
      return splitOverFactors(mesh, rule, dim, own,
                              [&](unsigned factor, StringAttr axis) {
                                factors[factor].push_back(axis);
                              }) == own.size();
    });
  };
  if (!spread(rule.results[0], result, factorAxes))
    return std::nullopt;
  SmallVector<AxisLists> operands;
  for (const ShardingRule::Tensor &dims : rule.operands) {
    AxisLists &axes = operands.emplace_back();
    for (const ShardingRule::Dim &dim : dims)
      axes.push_back(joinFactors(dim, factorAxes));
    // Of several factors the minor ones are cut last.
    SmallVector<AxisList> again(rule.factors.size());
    if (!spread(dims, axes, again))
      return std::nullopt;
    for (auto [own, all] : llvm::zip(again, factorAxes))
      if (!own.empty() && own != all)
        return std::nullopt;
  }
  return operands;
}

/// What the axes of a factor are to be: of one tensor, or of several.
namespace {
struct Claim {
  AxisList axes;
  /// Of each axis: elements of the tensor that has it; what is no wish
  /// outweighs wishes, and fixed tensors all others.
  SmallVector<int64_t, 2> weights;

  void push(StringAttr axis, int64_t weight) {
    axes.push_back(axis);
    weights.push_back(weight);
  }
  void cut(size_t size) {
    axes.truncate(std::min(size, axes.size()));
    weights.truncate(axes.size());
  }
};
} // namespace

/// Axis by axis the heaviest of those claims that agree so far.
static Claim mergeClaims(ArrayRef<Claim> claims) {
  Claim merged;
  for (size_t next = 0;; ++next) {
    const Claim *best = nullptr;
    for (const Claim &claim : claims) {
      if (claim.axes.size() <= next ||
          ArrayRef(claim.axes).take_front(next) != ArrayRef(merged.axes))
        continue;
      if (!best || claim.weights[next] > best->weights[next] ||
          (claim.weights[next] == best->weights[next] &&
           claim.axes.size() > best->axes.size()))
        best = &claim;
    }
    if (!best)
      return merged;
    merged.push(best->axes[next], best->weights[next]);
  }
}

/// Leaves an axis that two claims have to the heavier one, or the first.
static void settle(Claim &first, Claim &second) {
  for (size_t i = 0; i < first.axes.size(); ++i) {
    auto *found = llvm::find(second.axes, first.axes[i]);
    if (found == second.axes.end())
      continue;
    size_t j = found - second.axes.begin();
    if (second.weights[j] > first.weights[i])
      first.cut(i);
    else
      second.cut(j);
  }
}

AxisLists parallel::chooseFactorAxes(dist::MeshOp mesh, Operation *op,
                                     const ShardingRule &rule,
                                     ArrayRef<TensorAxes> tensors) {
  SmallVector<const ShardingRule::Tensor *> sides;
  SmallVector<Type> types;
  for (auto [index, tensor] : llvm::enumerate(rule.operands)) {
    sides.push_back(&tensor);
    types.push_back(op->getOperand(index).getType());
  }
  for (auto [index, tensor] : llvm::enumerate(rule.results)) {
    sides.push_back(&tensor);
    types.push_back(op->getResult(index).getType());
  }

  SmallVector<SmallVector<Claim>> claims(rule.factors.size());
  for (auto [index, tensor] : llvm::enumerate(tensors)) {
    int64_t weight = cast<RankedTensorType>(types[index]).getNumElements() + 1;
    if (tensor.fixed)
      weight += int64_t(1) << 60;
    SmallVector<Claim> perFactor(rule.factors.size());
    ArrayRef<StringAttr> wishes = tensor.wishes;
    for (auto [dim, axes] : llvm::enumerate(tensor.dims))
      splitOverFactors(mesh, rule, (*sides[index])[dim], axes,
                       [&](unsigned factor, StringAttr axis) {
                         bool wished = llvm::is_contained(wishes, axis);
                         perFactor[factor].push(
                             axis, weight + (wished ? 0 : int64_t(1) << 50));
                       });
    for (auto [factor, claim] : llvm::enumerate(perFactor))
      if (!claim.axes.empty())
        claims[factor].push_back(claim);
  }

  SmallVector<Claim> merged(
      llvm::map_range(claims, [](auto &of) { return mergeClaims(of); }));
  // An axis that two factors want goes to the heavier claim; the other keeps
  // what stands before it. One that is exchanged may share its axis with those
  // that no tensor has beside it.
  auto areApart = [&](unsigned i, unsigned j) {
    if (rule.factors[i].kind != FactorKind::Exchanged &&
        rule.factors[j].kind != FactorKind::Exchanged)
      return false;
    return llvm::none_of(sides, [&](const ShardingRule::Tensor *side) {
      auto has = [&](unsigned factor) {
        return llvm::any_of(*side, [&](const ShardingRule::Dim &dim) {
          return llvm::is_contained(dim, factor);
        });
      };
      return has(i) && has(j);
    });
  };
  for (unsigned i = 0; i < merged.size(); ++i)
    for (unsigned j = i + 1; j < merged.size(); ++j)
      if (!areApart(i, j))
        settle(merged[i], merged[j]);

  AxisLists chosen;
  for (auto [factor, claim] : llvm::enumerate(merged)) {
    AxisList &axes = chosen.emplace_back();
    int64_t rest = rule.factors[factor].size;
    for (StringAttr axis : claim.axes) {
      int64_t size = *mesh.findAxisSize(axis);
      if (rest == 0 || rest % size != 0)
        break;
      rest /= size;
      axes.push_back(axis);
    }
  }
  // A minor factor of a dimension is split only below completely split ones.
  for (bool changed = true; changed;) {
    changed = false;
    for (const ShardingRule::Tensor *side : sides)
      for (const ShardingRule::Dim &dim : *side) {
        bool complete = true;
        for (unsigned factor : dim) {
          if (!complete && !chosen[factor].empty()) {
            chosen[factor].clear();
            changed = true;
          }
          int64_t parts = 1;
          for (StringAttr axis : chosen[factor])
            parts *= *mesh.findAxisSize(axis);
          complete &= parts == rule.factors[factor].size;
        }
      }
  }
  return chosen;
}

/// Masks and angles of positions are made by a dozen; it is asked of each
/// operand of long chains.
static constexpr size_t kMostMakers = 64;

std::optional<Makers> parallel::findMakers(Value value, bool ofArguments) {
  Makers makers;
  SmallVector<Value> values{value};
  for (size_t next = 0; next < values.size(); ++next) {
    Operation *op = values[next].getDefiningOp();
    // A part of an argument is as good as all of it.
    auto part = dyn_cast_if_present<dist::ReshardOp>(op);
    auto argument =
        dyn_cast<BlockArgument>(part ? part.getInput() : values[next]);
    if (argument && ofArguments) {
      makers.arguments.insert(argument);
      continue;
    }
    if (!op || makers.ops.size() == kMostMakers)
      return std::nullopt;
    if (!makers.ops.insert(op) || op->getNumOperands() == 0)
      continue;
    auto spread = dyn_cast<nn::BroadcastOp>(op);
    if (spread && spread.getInput().getType().getRank() == 0)
      continue;
    if (!spread && !op->hasTrait<nn::Elementwise>() &&
        !isa<nn::ReshapeOp, nn::TransposeOp>(op))
      return std::nullopt;
    llvm::append_range(values, op->getOperands());
  }
  return makers;
}

bool parallel::isMadeOfNothing(Value value) {
  return findMakers(value).has_value();
}

bool parallel::isSilent(Operation *op, Value operand) {
  return isMadeOfNothing(operand) &&
         !llvm::all_of(op->getOperands(), isMadeOfNothing);
}

RankedTensorType parallel::withSharding(Type type,
                                        dist::ShardingAttr sharding) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType(),
                               sharding);
}

bool parallel::isWhole(Type type) {
  auto sharding = dist::ShardingAttr::of(type);
  return !sharding.isPartial() &&
         llvm::all_of(sharding.getDims(),
                      [](dist::AxesAttr axes) { return axes.empty(); });
}

AxisLists parallel::getAxisLists(dist::ShardingAttr sharding) {
  AxisLists lists;
  for (dist::AxesAttr axes : sharding.getDims())
    lists.emplace_back(axes.getNames());
  return lists;
}

dist::ShardingAttr parallel::getSharding(FlatSymbolRefAttr mesh,
                                         const AxisLists &dims,
                                         ArrayRef<StringAttr> partial,
                                         dist::Reduction reduction) {
  MLIRContext *context = mesh.getContext();
  SmallVector<dist::AxesAttr> lists;
  for (const AxisList &axes : dims)
    lists.push_back(dist::AxesAttr::get(context, axes, /*open=*/false));
  return dist::ShardingAttr::get(
      context, mesh, lists,
      dist::AxesAttr::get(context, partial, /*open=*/false), reduction);
}
