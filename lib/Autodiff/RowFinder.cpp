// Where the loss adds rows up it has a sum of what each comes to, and may do
// with it what keeps a mean a mean.

#include "RowFinder.h"

#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"
#include "lib/Names/BatchDim.h"
#include "lib/Transforms/FoldConstants.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;
using transforms::getSplatValue;

static bool isInteger(Value value) {
  return getElementTypeOrSelf(value).isSignlessInteger(32) ||
         getElementTypeOrSelf(value).isSignlessInteger(64);
}

LogicalResult RowFinder::run() {
  if (!findInputs())
    return failure();
  for (Operation &op : entry.getBody().front().without_terminator()) {
    State state = isDrawnByRow(op) ? State{RowKind::Rows, 0, 1} : transfer(&op);
    if (state.kind != RowKind::Free)
      for (Value result : op.getResults())
        if (!states.contains(result)) // results with places of their own
          states[result] = state;
  }
  return success();
}

/// Whether random numbers have the batch's size first, as those have that
/// depend on no input: what they make goes by rows as what is fed does.
bool RowFinder::isDrawnByRow(Operation &op) const {
  auto rng = dyn_cast<nn::RngOp>(op);
  return rng && rng.getType().getRank() > 0 &&
         rng.getType().getDimSize(0) == batch;
}

ArrayAttr RowFinder::getInputs(Builder &builder) const {
  return builder.getArrayAttr(llvm::to_vector_of<Attribute>(inputs));
}

ArrayAttr RowFinder::getEqual(Builder &builder) const {
  SmallVector<Attribute> all;
  for (auto [name, dim] : equal)
    all.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("dim", builder.getI64IntegerAttr(dim)),
         builder.getNamedAttr("input", name)}));
  return builder.getArrayAttr(all);
}

DenseI64ArrayAttr RowFinder::getIgnored(Builder &builder) const {
  return builder.getDenseI64ArrayAttr(ignored.getArrayRef());
}

/// The dimension of an input along which rows are, if it has one.
std::optional<unsigned> RowFinder::findBatchDim(BlockArgument argument) {
  StringAttr name = nameOf(argument);
  size_t rank = shapeOf(argument).size();
  if (!name || (ofTokens && !(isInteger(argument) && rank == 2)))
    return std::nullopt;
  std::optional<unsigned> dim = batchDimOf(name, batchDims);
  return dim && *dim < rank ? dim : std::nullopt;
}

/// Inputs of the batch that most of them have.
bool RowFinder::findInputs() {
  llvm::MapVector<int64_t, SmallVector<std::pair<BlockArgument, unsigned>>>
      byBatch;
  for (BlockArgument argument : entry.getArguments())
    if (std::optional<unsigned> dim = findBatchDim(argument))
      if (int64_t size = shapeOf(argument)[*dim]; size > 1)
        byBatch[size].emplace_back(argument, *dim);
  ArrayRef<std::pair<BlockArgument, unsigned>> most;
  for (auto &[size, arguments] : byBatch)
    if (arguments.size() > most.size()) {
      most = arguments;
      batch = size;
    }
  for (auto [argument, dim] : most) {
    states[argument] = {RowKind::Rows, dim, 1};
    inputs.push_back(nameOf(argument));
  }
  return !most.empty();
}

StringAttr RowFinder::nameOf(BlockArgument argument) {
  return entry.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                            nn::kInputAttr);
}

/// Where a dimension of a rule's tensor has the rows.
std::optional<RowFinder::Place>
RowFinder::findPlace(const ShardingRule &rule, const ShardingRule::Dim &dim,
                     int64_t size, int64_t inner) const {
  int64_t minor = size; // elements behind the factor at hand
  for (unsigned factor : dim)
    minor /= rule.factors[factor].size;
  for (unsigned factor : llvm::reverse(dim)) {
    int64_t own = rule.factors[factor].size;
    if (inner % minor == 0 && inner / minor < own) {
      int64_t within = inner / minor;
      if (own % (within * batch) != 0)
        return std::nullopt;
      return Place{factor, within};
    }
    minor *= own;
  }
  return std::nullopt;
}

/// Where a tensor of a rule has the factor: of its dimensions one. Nothing:
/// it has it nowhere, or twice (`isTwice`).
std::optional<RowFinder::State>
RowFinder::findFactor(const ShardingRule &rule,
                      const ShardingRule::Tensor &tensor,
                      ArrayRef<int64_t> shape, Place place, bool &isTwice) {
  std::optional<State> found;
  for (auto [dim, factors] : llvm::enumerate(tensor)) {
    int64_t minor = shape[dim];
    for (unsigned factor : factors)
      minor /= rule.factors[factor].size;
    for (unsigned factor : llvm::reverse(factors)) {
      if (factor == place.factor) {
        isTwice |= found.has_value();
        found = State{RowKind::Rows, dim, place.inner * minor};
      }
      minor *= rule.factors[factor].size;
    }
  }
  return found;
}

bool RowFinder::isNumbered(const ShardingRule &rule, Place place) {
  return llvm::is_contained(rule.numbered, place.factor);
}

RowFinder::State RowFinder::transfer(Operation *op) {
  State mixed{RowKind::Mixed};
  SmallVector<State> operands;
  bool hasRows = false, hasTerms = false;
  for (Value operand : op->getOperands()) {
    operands.push_back(states.lookup(operand));
    hasRows |= operands.back().kind == RowKind::Rows;
    hasTerms |= isOfAllRows(operands.back().kind);
    if (operands.back().kind == RowKind::Mixed && !placesAlone)
      return mixed;
  }
  if (!hasRows && !hasTerms)
    return {};
  if (placesAlone) {
    auto sharded = dyn_cast<ShardingRuleOpInterface>(op);
    return sharded ? transferPlaces(op, sharded.getShardingRule(), operands)
                   : mixed;
  }
  if (hasRows && hasTerms) // rows that depend on what all rows come to
    return mixed;
  auto sharded = dyn_cast<ShardingRuleOpInterface>(op);
  if (!sharded)
    return mixed;
  ShardingRule rule = sharded.getShardingRule();
  return hasTerms ? transferTerms(op, rule, operands)
                  : transferRows(op, rule, operands);
}

/// The place that all operands with rows have them in, if it is one.
std::optional<RowFinder::Place>
RowFinder::findCommonPlace(Operation *op, const ShardingRule &rule,
                           ArrayRef<State> operands) const {
  std::optional<Place> place;
  for (auto [number, state] : llvm::enumerate(operands)) {
    if (state.kind != RowKind::Rows)
      continue;
    std::optional<Place> own =
        findPlace(rule, rule.operands[number][state.dim],
                  shapeOf(op->getOperand(number))[state.dim], state.inner);
    if (!own || (place && !(*place == *own)))
      return std::nullopt;
    place = own;
  }
  return place;
}

RowFinder::State RowFinder::transferPlaces(Operation *op,
                                           const ShardingRule &rule,
                                           ArrayRef<State> operands) {
  std::optional<Place> place = findCommonPlace(op, rule, operands);
  if (!place)
    return {RowKind::Mixed};
  for (auto [number, result] : llvm::enumerate(op->getResults())) {
    bool isTwice = false;
    std::optional<State> found = findFactor(rule, rule.results[number],
                                            shapeOf(result), *place, isTwice);
    if (found && !isTwice)
      states[result] = *found;
  }
  return {};
}

RowFinder::State RowFinder::transferRows(Operation *op,
                                         const ShardingRule &rule,
                                         ArrayRef<State> operands) {
  State mixed{RowKind::Mixed};
  std::optional<Place> place = findCommonPlace(op, rule, operands);
  if (!place)
    return mixed;
  bool isTwice = false;
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    std::optional<State> found = findFactor(rule, rule.operands[number],
                                            shapeOf(operand), *place, isTwice);
    if (operands[number].kind == RowKind::Free && found &&
        !isEqualAlong(operand, *found))
      return mixed;
  }
  if (isTwice || isNumbered(rule, *place))
    return mixed;
  FactorKind kind = rule.factors[place->factor].kind;
  for (auto [number, result] : llvm::enumerate(op->getResults())) {
    std::optional<State> found = findFactor(rule, rule.results[number],
                                            shapeOf(result), *place, isTwice);
    if (isTwice || found.has_value() != (kind == FactorKind::PassThrough))
      return mixed;
    if (found)
      states[result] = *found;
  }
  if (kind == FactorKind::PassThrough)
    return {RowKind::Rows};
  if (kind != FactorKind::Sum)
    return mixed;
  return countsAreFree && isCount(op) ? State{} : State{RowKind::Sum};
}

/// A mean stays one where it is scaled, and where something is added to it,
/// a sum where that is another.
RowFinder::State RowFinder::transferTerms(Operation *op,
                                          const ShardingRule &rule,
                                          ArrayRef<State> operands) {
  SmallVector<unsigned> terms;
  bool isSum = true, adds = isa<nn::AddOp, nn::SubOp>(op);
  for (auto [number, state] : llvm::enumerate(operands))
    if (isOfAllRows(state.kind)) {
      terms.push_back(number);
      isSum &= state.kind == RowKind::Sum;
    }
  bool isFloatCast = isa<nn::CastOp>(op) &&
                     isa<FloatType>(getElementTypeOrSelf(op->getResult(0)));
  bool keeps = adds || isFloatCast ||
               llvm::any_of(rule.linearGroups, [&](ArrayRef<unsigned> group) {
                 return group == ArrayRef(terms);
               });
  isSum &= !adds || terms.size() == operands.size();
  return {!keeps ? RowKind::Mixed : isSum ? RowKind::Sum : RowKind::Mean};
}

/// Whether a value that no row changes has the same in the place of each row.
bool RowFinder::isEqualAlong(Value value, const State &at) {
  if (shapeOf(value)[at.dim] == 1 || getSplatValue(value))
    return true;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    StringAttr name = nameOf(argument);
    if (name)
      equal.insert({name, int64_t(at.dim)});
    return name != nullptr;
  }
  Operation *op = value.getDefiningOp();
  if (isa<nn::ConstantOp>(op))
    return false;
  if (isa<nn::RngOp>(op)) // each row's are its own, in any place
    return true;
  if (auto iota = dyn_cast<nn::IotaOp>(op))
    return iota.getDim() != at.dim;
  auto sharded = dyn_cast<ShardingRuleOpInterface>(op);
  if (!sharded)
    return false;
  ShardingRule rule = sharded.getShardingRule();
  unsigned number = cast<OpResult>(value).getResultNumber();
  std::optional<Place> place = findPlace(rule, rule.results[number][at.dim],
                                         shapeOf(value)[at.dim], at.inner);
  if (!place || isNumbered(rule, *place))
    return false;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    bool isTwice = false;
    std::optional<State> found = findFactor(rule, rule.operands[index],
                                            shapeOf(operand), *place, isTwice);
    if (isTwice || (found && !isEqualAlong(operand, *found)))
      return false;
  }
  return true;
}

/// Whether a sum counts the labels that are not a certain number: the same
/// count of each row, if none of them is. The number is noted.
bool RowFinder::isCount(Operation *op) {
  auto reduce = dyn_cast<nn::ReduceOp>(op);
  if (!reduce)
    return false;
  Value counted = reduce.getInput();
  while (auto *view = counted.getDefiningOp()) {
    if (!isa<nn::CastOp, nn::ReshapeOp, nn::TransposeOp>(view))
      break;
    counted = view->getOperand(0);
  }
  auto compare = counted.getDefiningOp<nn::CompareOp>();
  auto predicate = nn::ComparePredicate::ne;
  if (auto negated = counted.getDefiningOp<nn::NotOp>()) {
    compare = negated.getInput().getDefiningOp<nn::CompareOp>();
    predicate = nn::ComparePredicate::eq;
  }
  if (!compare || compare.getPredicate() != predicate)
    return false;
  for (auto [labels, number] :
       {std::pair(compare.getLhs(), compare.getRhs()),
        std::pair(compare.getRhs(), compare.getLhs())}) {
    std::optional<double> value = getSplatValue(number);
    if (!value || !isMoved(labels))
      continue;
    ignored.insert(int64_t(*value));
    return true;
  }
  return false;
}

/// Whether a value has integers of rows as they are, and constants.
bool RowFinder::isMoved(Value value) {
  if (!isInteger(value))
    return false;
  if (isa<BlockArgument>(value))
    return states.lookup(value).kind == RowKind::Rows;
  if (getSplatValue(value))
    return true;
  Operation *op = value.getDefiningOp();
  return isa<nn::CastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp, nn::PadOp,
             nn::ConcatOp>(op) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isMoved(operand); });
}
