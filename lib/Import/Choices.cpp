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

unsigned Choices::add(Value chooser, Value mask) {
  for (auto [number, earlier] : llvm::enumerate(choosers))
    if (isAlike(earlier, chooser))
      return number;
  choosers.push_back(chooser);
  masks.push_back(mask);
  unsigned number = masks.size() - 1;
  mark(mask, {number, 0});
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
  return n.reshape(masks[chosen.number], line);
}

Value Choices::findMask(Importer &n, Value value) {
  return n.broadcast(findLine(n, value), Importer::shape(value));
}

Value Choices::makeSafe(Importer &n, Value tuples, ArrayRef<int64_t> sizes) {
  std::optional<Chosen> chosen = find(tuples);
  if (!chosen)
    return tuples;
  DenseElementsAttr known = Importer::constantOf(tuples);
  Value safe;
  if (!known) {
    safe = fill(n, tuples, n.splat({}, Importer::element(tuples), 0));
  } else {
    SmallVector<int64_t> indices = integerElements(known);
    for (auto [number, index] : llvm::enumerate(indices)) {
      int64_t size = sizes[number % sizes.size()];
      if (index < -size || index >= size)
        index = 0;
    }
    safe = n.cast(n.ints(indices, Importer::shape(tuples)),
                  Importer::element(tuples));
    if (safe == tuples)
      return safe;
  }
  if (safe)
    mark(safe, *chosen);
  return safe;
}

/// Numbers so far apart that shapes of one choice and of another differ.
int64_t Choices::getOtherSize(unsigned number) const {
  int64_t places = Importer::shape(masks[number]).front();
  return places + 1000003 + 7919 * int64_t(number);
}

void Choices::markSize(Value value, Value other) {
  if (Importer::constantOf(value) != Importer::constantOf(other))
    others.insert_or_assign(value, other);
}

std::optional<unsigned> Choices::findSize(int64_t size, int64_t other,
                                          int64_t *factor) const {
  std::optional<unsigned> one;
  for (auto [number, mask] : llvm::enumerate(masks)) {
    int64_t places = Importer::shape(mask).front();
    int64_t times = size % places == 0 ? size / places : 0;
    if (times < 1 || times * getOtherSize(number) != other ||
        (times != 1 && !factor))
      continue;
    if (one)
      return std::nullopt; // could be of either
    one = number;
    if (factor)
      *factor = times;
  }
  return one;
}

Value Choices::count(Importer &n, Chosen chosen, Type element) {
  Suspension suspension(*this); // the mask is true where it is
  return n.reduce(nn::ReductionKind::sum, n.cast(masks[chosen.number], element),
                  {0},
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

void Choices::enter(Value value, Chosen chosen) {
  mark(value, chosen);
  if (Importer::isFloat(value))
    entrances.insert(value);
}

FailureOr<Choices::Followed> Choices::follow(Importer &n, Operation *op) {
  Followed followed;
  auto &results = followed.results;
  results.resize(op->getNumResults());
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
    if (factors.size() != 1 ||
        rule.factors[factors[0]].size != Importer::shape(operand)[own->dim] ||
        (factor && *factor != factors[0]))
      return refuse("this one takes elements together");
    factor = factors[0];
  }
  if (llvm::is_contained(rule.numbered, *factor))
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
  for (auto [index, dims] : llvm::enumerate(rule.results))
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (llvm::is_contained(factors, *factor)) {
        if (factors.size() != 1 || results[index])
          return refuse("this one takes elements together");
        results[index] = {chosen->number, int64_t(dim)};
      }

  OpBuilder::InsertionGuard guard(n.graph.builder);
  n.graph.builder.setInsertionPoint(op);
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
    } else if (!Importer::constantOf(value) &&
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

static bool isState(BlockArgument argument) {
  auto entry = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto attribute = entry.getArgAttr(argument.getArgNumber(), nn::kStateAttr);
  return attribute != nullptr;
}

/// Whether an op of finite numbers is finite, and so are its slopes.
static bool isTame(Operation *op) {
  return isa<nn::AddOp, nn::SubOp, nn::MulOp, nn::NegOp, nn::AbsOp, nn::ReluOp,
             nn::TanhOp, nn::SigmoidOp, nn::ErfOp, nn::GeluOp, nn::SinOp,
             nn::CosOp, nn::MinOp, nn::MaxOp, nn::SelectOp, nn::CastOp,
             nn::CompareOp, nn::MatmulOp, nn::CrossEntropyOp, nn::SoftmaxOp,
             nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp, nn::SliceOp,
             nn::ConcatOp, nn::PadOp, nn::GatherOp, nn::GatherNdOp,
             nn::DropoutOp, nn::StopGradientOp>(op) ||
         (isa<nn::ReduceOp>(op) &&
          cast<nn::ReduceOp>(op).getKind() == nn::ReductionKind::sum);
}

/// Whether its slopes do not depend on its operands.
static bool isLinear(Operation *op) {
  return isa<nn::AddOp, nn::SubOp, nn::NegOp, nn::SelectOp, nn::CastOp,
             nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp, nn::SliceOp,
             nn::ConcatOp, nn::PadOp, nn::GatherOp, nn::GatherNdOp,
             nn::DropoutOp, nn::StopGradientOp, nn::ReduceOp>(op);
}

/// What is finite wherever the run's inputs are, chosen or not; of what comes
/// into a choice, once zeros take the place of what is not.
llvm::DenseSet<Value> Choices::findFinite() const {
  llvm::DenseSet<Value> finite;
  Value first = masks.front();
  Block *block = first.getParentBlock();
  for (BlockArgument argument : block->getArguments())
    if (!Importer::isFloat(argument) || isState(argument))
      finite.insert(argument);
  for (Operation &op : *block) {
    bool isFinite = isTame(&op) && llvm::all_of(op.getOperands(), [&](Value v) {
                      return finite.contains(v);
                    });
    if (DenseElementsAttr known = op.getNumResults() == 1
                                      ? Importer::constantOf(op.getResult(0))
                                      : nullptr)
      isFinite = !isa<FloatType>(known.getElementType()) ||
                 llvm::all_of(known.isSplat()
                                  ? llvm::make_range(
                                        known.value_begin<APFloat>(),
                                        std::next(known.value_begin<APFloat>()))
                                  : known.getValues<APFloat>(),
                              [](const APFloat &v) { return v.isFinite(); });
    bool isFilled = isTame(&op) && llvm::any_of(op.getResults(), [&](Value v) {
                      return entrances.contains(v);
                    });
    if (isFilled && !isFinite)
      isFinite = llvm::all_of(op.getOperands(), [&](Value v) {
        return finite.contains(v) || found.contains(v);
      });
    for (Value result : op.getResults())
      if (isFinite || !Importer::isFloat(result))
        finite.insert(result);
  }
  return finite;
}

bool Choices::reachesPole(Value value,
                          const llvm::DenseSet<Value> &finite) const {
  SmallVector<Value> work{value};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    for (Operation *user : next.getUsers()) {
      auto isEntrance = [&](Value v) { return entrances.contains(v); };
      if (!finite.contains(next) &&
          llvm::any_of(user->getResults(), isEntrance))
        continue; // zeros take its place there
      if (!isTame(user) ||
          (!isLinear(user) && llvm::any_of(user->getOperands(), [&](Value v) {
            return !finite.contains(v);
          })))
        return true;
      for (Value result : user->getResults())
        if (found.contains(result) && seen.insert(result).second)
          work.push_back(result);
    }
  }
  return false;
}

Value Choices::buildMask(OpBuilder &builder, Value value) const {
  Chosen chosen = found.lookup(value);
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> line(type.getRank(), 1);
  line[chosen.dim] = type.getDimSize(chosen.dim);
  auto bits = [&](ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, builder.getI1Type());
  };
  Value mask = nn::ReshapeOp::create(builder, value.getLoc(), bits(line),
                                     masks[chosen.number]);
  return nn::BroadcastOp::create(builder, value.getLoc(), bits(type.getShape()),
                                 mask);
}

bool Choices::guardGradients(OpBuilder *builder) {
  if (isEmpty())
    return false;
  llvm::DenseSet<Value> finite = findFinite();
  bool isNeeded = false;
  for (Value value : entrances) {
    Operation *op = value.getDefiningOp();
    for (OpOperand &operand : op->getOpOperands()) {
      Value of = operand.get();
      if (!found.contains(of) || !Importer::isFloat(of) || finite.contains(of))
        continue;
      isNeeded = true;
      if (!builder)
        continue;
      OpBuilder::InsertionGuard guard(*builder);
      builder->setInsertionPoint(op);
      auto type = cast<RankedTensorType>(of.getType());
      Value zeros = nn::ConstantOp::create(
          *builder, of.getLoc(),
          DenseElementsAttr::get(type,
                                 builder->getZeroAttr(type.getElementType())));
      operand.set(nn::SelectOp::create(*builder, of.getLoc(), type,
                                       buildMask(*builder, of), of, zeros));
    }
    if (!reachesPole(value, finite))
      continue;
    isNeeded = true;
    if (!builder)
      continue;
    OpBuilder::InsertionGuard guard(*builder);
    builder->setInsertionPointAfter(op);
    Location loc = value.getLoc();
    Value mask = buildMask(*builder, value);
    Value still =
        nn::StopGradientOp::create(*builder, loc, value.getType(), value);
    Value guarded = nn::SelectOp::create(*builder, loc, value.getType(), mask,
                                         value, still);
    SmallPtrSet<Operation *, 2> own{still.getDefiningOp(),
                                    guarded.getDefiningOp()};
    value.replaceAllUsesExcept(guarded, own);
    found.insert({guarded, found.lookup(value)});
    if (finite.contains(value))
      finite.insert(guarded);
  }
  return isNeeded;
}
