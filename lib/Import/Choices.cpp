// Follows choices through the ops that importers build.

#include "Choices.h"

#include "NodeImporter.h"
#include "Tensors.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "lib/Transforms/FoldConstants.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// How deep a value is looked into.
static constexpr int kDeep = 8;

/// Whether two values are computed alike: exporters write a mask anew wherever
/// it is used.
static bool isAlike(Value one, Value other, int depth = 0) {
  if (one == other)
    return true;
  Operation *op = one.getDefiningOp(), *twin = other.getDefiningOp();
  if (!op || !twin || depth == kDeep || !isPure(op) ||
      cast<OpResult>(one).getResultNumber() !=
          cast<OpResult>(other).getResultNumber())
    return false;
  return OperationEquivalence::isEquivalentTo(
      op, twin,
      [&](Value lhs, Value rhs) {
        return success(isAlike(lhs, rhs, depth + 1));
      },
      nullptr, OperationEquivalence::IgnoreLocations);
}

/// What a value was before it got another shape.
static Value withoutReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getInput();
  return value;
}

std::optional<unsigned> Choices::findBy(Value chooser) const {
  for (auto [number, earlier] : llvm::enumerate(all))
    if (earlier.chooser && isAlike(earlier.chooser, chooser))
      return number;
  // The same elements of another shape, one after another.
  for (auto [number, earlier] : llvm::enumerate(all))
    if (earlier.chooser && llvm::is_sorted(earlier.order) &&
        isAlike(withoutReshapes(earlier.chooser), withoutReshapes(chooser)))
      return number;
  return std::nullopt;
}

unsigned Choices::add(Choice choice) {
  all.push_back(std::move(choice));
  unsigned number = all.size() - 1;
  mark(all.back().mask, {number, 0});
  return number;
}

std::optional<Choices::Chosen> Choices::find(Value value) const {
  auto known = found.find(value);
  return suspended > 0 || known == found.end() ? std::nullopt
                                               : std::optional(known->second);
}

void Choices::mark(Value value, Chosen chosen) {
  found.insert_or_assign(value, chosen);
}

Value Choices::findLine(Importer &n, Value value) {
  Chosen chosen = *find(value);
  SmallVector<int64_t> line(Importer::rank(value), 1);
  line[chosen.dim] = Importer::shape(value)[chosen.dim];
  return n.reshape(all[chosen.number].mask, line);
}

Value Choices::findMask(Importer &n, Value value) {
  return n.broadcast(findLine(n, value), Importer::shape(value));
}

Value Choices::makeSafe(Importer &n, Value tuples, ArrayRef<int64_t> sizes) {
  std::optional<Chosen> chosen = find(tuples);
  if (!chosen || safeIndices.contains(tuples))
    return tuples;
  // What is known to be in range stays known; else the run finds it out.
  if (DenseElementsAttr known = Importer::constantOf(tuples)) {
    bool isSafe = true;
    for (auto [number, index] : llvm::enumerate(integerElements(known))) {
      int64_t size = sizes[number % sizes.size()];
      isSafe &= index >= -size && index < size;
    }
    if (isSafe)
      return tuples;
  }
  Value safe = fill(n, tuples, n.splat({}, Importer::element(tuples), 0));
  if (safe)
    mark(safe, *chosen);
  safeIndices.insert(safe);
  return safe;
}

Value Choices::count(Importer &n, Chosen chosen, Type element) {
  Suspension suspension(*this); // the mask is true where it is
  return n.reduce(nn::ReductionKind::sum,
                  n.cast(all[chosen.number].mask, element), {0},
                  /*keepDims=*/false);
}

Value Choices::fill(Importer &n, Value value, Value neutral) {
  Value mask = findMask(n, value);
  Suspension suspension(*this);
  return n.select(mask, value, n.broadcast(neutral, Importer::shape(value)));
}

static ShardingRule::Tensor getDims(const ShardingRule &rule, OpResult result) {
  return rule.results[result.getResultNumber()];
}

static bool isUniformAt(Value value, int64_t dim, int depth) {
  ArrayRef<int64_t> shape = Importer::shape(value);
  if (shape[dim] == 1)
    return true;
  if (DenseElementsAttr known = Importer::constantOf(value))
    return transforms::withoutRepeats(known).getType().getDimSize(dim) == 1;
  Operation *op = value.getDefiningOp();
  if (!op || depth == kDeep)
    return false;
  if (auto broadcast = dyn_cast<nn::BroadcastOp>(op)) {
    ArrayRef<int64_t> from = Importer::shape(broadcast.getInput());
    int64_t own = dim - int64_t(shape.size() - from.size());
    return own < 0 || isUniformAt(broadcast.getInput(), own, depth + 1);
  }
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled)
    return false;
  ShardingRule rule = ruled.getShardingRule();
  ShardingRule::Dim factors = getDims(rule, cast<OpResult>(value))[dim];
  if (factors.size() != 1 || rule.factors[factors[0]].size != shape[dim] ||
      llvm::is_contained(rule.numbered, factors[0]))
    return false;
  for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
    for (auto [index, own] : llvm::enumerate(dims))
      if (llvm::is_contained(own, factors[0]) &&
          (own.size() != 1 || !isUniformAt(operand, index, depth + 1)))
        return false;
  return true;
}

bool accel::import::isUniform(Value value, int64_t dim) {
  return isUniformAt(value, dim, 0);
}

/// What combining over places makes of those where nothing is chosen.
static Value getNeutral(Importer &n, FactorKind kind, Type element) {
  if (kind == FactorKind::Sum)
    return n.splat({}, element, 0);
  return n.getNeutral(kind == FactorKind::Max ? nn::ReductionKind::max
                                              : nn::ReductionKind::min,
                      element);
}

/// Operands that point into another one, or say a class of it.
static std::optional<unsigned> findIndices(Operation *op) {
  if (isa<nn::GatherOp, nn::GatherNdOp, nn::CrossEntropyOp>(op))
    return 1;
  return std::nullopt;
}

/// How many elements a dimension has for each of its first factor, of which it
/// has all; none if it is not made of its factors alone.
static std::optional<int64_t> countBehind(const ShardingRule &rule,
                                          const ShardingRule::Dim &factors,
                                          int64_t size, int64_t places) {
  int64_t count = 1;
  for (unsigned factor : llvm::drop_begin(factors))
    count *= rule.factors[factor].size;
  return rule.factors[factors.front()].size == places && places * count == size
             ? std::optional(count)
             : std::nullopt;
}

void Choices::enter(Value value, Chosen chosen) {
  mark(value, chosen);
  if (Importer::isFloat(value))
    entrances.insert(value);
}

FailureOr<Choices::Followed> Choices::follow(Importer &n, Operation *op) {
  Followed followed;
  auto &results = followed.results;
  results.resize(op->getNumResults());
  if (failed(checkGrouped(n, op->getOperands())))
    return failure();
  std::optional<Chosen> chosen;
  for (Value operand : op->getOperands())
    if (std::optional<Chosen> own = find(operand); own && !chosen)
      chosen = own;
  if (!chosen)
    return followed;
  auto refuse = [&](const Twine &why) {
    n.error() << "expected a computation on each chosen element by itself, or "
                 "their sum or extreme, of what NonZero chooses at run time; "
              << why << " ('" << op->getName()
              << "'): write what is chosen as a product with a mask, or "
                 "torch.where";
    return failure();
  };
  if (isa<nn::StopGradientOp, nn::DropoutOp>(op)) {
    results[0] = chosen;
    return followed;
  }
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled)
    return refuse("this one has no such rule");
  ShardingRule rule = ruled.getShardingRule();
  std::optional<unsigned> factor;
  for (auto [operand, dims] :
       llvm::zip_equal(op->getOperands(), rule.operands)) {
    std::optional<Chosen> own = find(operand);
    if (!own)
      continue;
    if (own->number != chosen->number)
      return refuse("this one combines two choices");
    ShardingRule::Dim factors = dims[own->dim];
    // Rows again of what was flattened.
    if (isa<nn::ReshapeOp>(op) && factors.size() > 1 && all[own->number].base) {
      unsigned rows = *all[own->number].base;
      if (countBehind(rule, factors, Importer::shape(operand)[own->dim],
                      Importer::shape(all[rows].mask).front()) ==
          all[own->number].factor) {
        chosen->number = rows;
        factor = factors[0];
        break;
      }
    }
    if (factors.size() != 1 ||
        rule.factors[factors[0]].size != Importer::shape(operand)[own->dim] ||
        (factor && *factor != factors[0]))
      return refuse("this one takes elements together");
    factor = factors[0];
  }
  auto reduce = dyn_cast<nn::ReduceOp>(op);
  if (llvm::is_contained(rule.numbered, *factor) ||
      (reduce && reduce.getFirst() &&
       !llvm::is_sorted(all[chosen->number].order)))
    return refuse("this one depends on which place an element has");
  for (auto [operand, dims] :
       llvm::zip_equal(op->getOperands(), rule.operands)) {
    bool isChosen = find(operand).has_value();
    followed.isEntrance |= !isChosen && Importer::isFloat(operand) &&
                           !Importer::constantOf(operand);
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (llvm::is_contained(factors, *factor) &&
          !(isChosen && find(operand)->dim == int64_t(dim)) &&
          (factors.size() != 1 || !isUniform(operand, dim)))
        return refuse("this one meets elements that are not of the choice");
  }
  OpBuilder::InsertionGuard guard(n.graph.builder);
  n.graph.builder.setInsertionPoint(op);
  for (auto [index, dims] : llvm::enumerate(rule.results))
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (llvm::is_contained(factors, *factor)) {
        unsigned number = chosen->number;
        std::optional<int64_t> behind =
            isa<nn::ReshapeOp>(op) && factors.front() == *factor
                ? countBehind(rule, factors,
                              Importer::shape(op->getResult(index))[dim],
                              Importer::shape(all[number].mask).front())
                : std::nullopt;
        if (behind)
          number = flatten(n, number, *behind);
        else if (factors.size() != 1 || isa<nn::ReshapeOp>(op) ||
                 results[index])
          return refuse("this one takes elements together");
        results[index] = {number, int64_t(dim)};
      }

  FactorKind kind = rule.factors[*factor].kind;
  bool isKept = llvm::all_of(results, [](auto &each) { return each; }),
       isGone = llvm::none_of(results, [](auto &each) { return each; });
  bool isCombined = kind == FactorKind::Sum || kind == FactorKind::Max ||
                    kind == FactorKind::Min;
  // A 0 adds nothing only where what is added up is linear in the operand.
  bool isNeutral = llvm::all_of(
      llvm::seq<unsigned>(op->getNumOperands()), [&](unsigned operand) {
        return kind != FactorKind::Sum || !find(op->getOperand(operand)) ||
               llvm::any_of(rule.linearGroups, [&](auto &group) {
                 return llvm::is_contained(group, operand);
               });
      });
  if (isCombined ? !isGone || !isNeutral
                 : !isKept || kind != FactorKind::PassThrough)
    return refuse("this one combines them otherwise");
  std::optional<unsigned> indices = findIndices(op);
  bool dividesIntegers = isa<nn::DivOp, nn::ModOp>(op);
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    std::optional<Chosen> own = find(value);
    if (!own)
      continue;
    Type element = Importer::element(value);
    if (isCombined) {
      operand.set(fill(n, value, getNeutral(n, kind, element)));
    } else if (!Importer::constantOf(value) && !safeIndices.contains(value) &&
               (operand.getOperandNumber() == indices ||
                (dividesIntegers && operand.getOperandNumber() == 1 &&
                 !Importer::isFloat(value)))) {
      // What lies where nothing is chosen may point nowhere, or be 0.
      Value safe =
          fill(n, value, n.splat({}, element, dividesIntegers ? 1 : 0));
      if (safe)
        mark(safe, *own);
      operand.set(safe);
    }
    if (!operand.get())
      return failure();
  }
  return followed;
}
