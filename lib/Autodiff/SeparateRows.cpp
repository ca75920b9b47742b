// Follows the rows of the batch through an entry by the ops' sharding rules:
// what may be cut along a factor, each piece by itself, may be cut into rows.
// Where the loss adds them up it has a sum of what each comes to, and may do
// with it what keeps a mean a mean, or divide it by another such sum.

#include "SeparateRows.h"

#include "LossTerms.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"
#include "lib/Names/BatchDim.h"
#include "lib/Transforms/FoldConstants.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;
using transforms::getSplatValue;

namespace {

/// Of Rows, dimension `dim` is (outer, batch, inner).
struct State {
  RowKind kind = RowKind::Free;
  size_t dim = 0;
  int64_t inner = 1;
};

/// A factor of a rule in which rows are, and how many of its elements follow
/// each other in one row.
struct Place {
  unsigned factor;
  int64_t inner;
  bool operator==(const Place &other) const {
    return factor == other.factor && inner == other.inner;
  }
};

ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

bool isInteger(Value value) {
  return getElementTypeOrSelf(value).isSignlessInteger(32) ||
         getElementTypeOrSelf(value).isSignlessInteger(64);
}

class RowFinder {
public:
  /// `countsAreFree`: each row has as many labels that count. `ofTokens`: no
  /// other inputs than integers [batch, length] have rows.
  RowFinder(func::FuncOp entry, ArrayRef<std::string> batchDims,
            bool countsAreFree, bool ofTokens)
      : entry(entry), batchDims(batchDims), countsAreFree(countsAreFree),
        ofTokens(ofTokens) {}

  std::optional<SeparateRows> run() {
    if (!findInputs())
      return std::nullopt;
    for (Operation &op : entry.getBody().front().without_terminator()) {
      State state = transfer(&op);
      if (state.kind != RowKind::Free)
        for (Value result : op.getResults())
          if (!states.contains(result)) // results with places of their own
            states[result] = state;
    }
    SeparateRows found;
    OpBuilder builder(entry.getBody().front().getTerminator());
    FailureOr<ArrayAttr> terms = addTerms(builder, found);
    if (failed(terms))
      return std::nullopt;
    SmallVector<Attribute> same;
    for (auto [name, dim] : equal)
      same.push_back(builder.getDictionaryAttr(
          {builder.getNamedAttr("dim", builder.getI64IntegerAttr(dim)),
           builder.getNamedAttr("input", name)}));
    found.attribute = builder.getDictionaryAttr(
        {builder.getNamedAttr("equal", builder.getArrayAttr(same)),
         builder.getNamedAttr(
             "ignored", builder.getDenseI64ArrayAttr(ignored.getArrayRef())),
         builder.getNamedAttr("inputs", builder.getArrayAttr(inputs)),
         builder.getNamedAttr("terms", *terms)});
    return found;
  }

private:
  /// Fails where the loss is neither a mean nor a sum of quotients, which are
  /// results then; of a mean there are none.
  FailureOr<ArrayAttr> addTerms(OpBuilder &builder, SeparateRows &found) {
    Value loss = entry.getBody().front().getTerminator()->getOperand(0);
    auto kindOf = [&](Value value) { return states.lookup(value).kind; };
    if (isTerms(kindOf(loss)))
      return builder.getArrayAttr({});
    std::optional<SmallVector<LossTerm>> terms =
        splitLoss(builder, loss, kindOf);
    if (!terms)
      return failure();
    return nameTerms(builder, *terms, found.terms);
  }

  static bool isTerms(RowKind kind) {
    return kind == RowKind::Sum || kind == RowKind::Mean;
  }

  /// The dimension of an input along which rows are, if it has one.
  std::optional<unsigned> findBatchDim(BlockArgument argument) {
    StringAttr name = nameOf(argument);
    size_t rank = shapeOf(argument).size();
    if (!name || (ofTokens && !(isInteger(argument) && rank == 2)))
      return std::nullopt;
    std::optional<unsigned> dim = batchDimOf(name, batchDims);
    return dim && *dim < rank ? dim : std::nullopt;
  }

  /// Inputs of the batch that most of them have.
  bool findInputs() {
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

  StringAttr nameOf(BlockArgument argument) {
    return entry.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                              nn::kInputAttr);
  }

  /// Where a dimension of a rule's tensor has the rows.
  std::optional<Place> findPlace(const ShardingRule &rule,
                                 const ShardingRule::Dim &dim, int64_t size,
                                 int64_t inner) const {
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
  static std::optional<State> findFactor(const ShardingRule &rule,
                                         const ShardingRule::Tensor &tensor,
                                         ArrayRef<int64_t> shape, Place place,
                                         bool &isTwice) {
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

  static bool isNumbered(const ShardingRule &rule, Place place) {
    return llvm::is_contained(rule.numbered, place.factor);
  }

  State transfer(Operation *op) {
    State mixed{RowKind::Mixed};
    SmallVector<State> operands;
    bool hasRows = false, hasTerms = false;
    for (Value operand : op->getOperands()) {
      operands.push_back(states.lookup(operand));
      hasRows |= operands.back().kind == RowKind::Rows;
      hasTerms |= isTerms(operands.back().kind);
      if (operands.back().kind == RowKind::Mixed)
        return mixed;
    }
    if (!hasRows && !hasTerms)
      return {};
    if (hasRows && hasTerms) // rows that depend on what all rows come to
      return mixed;
    auto sharded = dyn_cast<ShardingRuleOpInterface>(op);
    if (!sharded)
      return mixed;
    ShardingRule rule = sharded.getShardingRule();
    return hasTerms ? transferTerms(op, rule, operands)
                    : transferRows(op, rule, operands);
  }

  State transferRows(Operation *op, const ShardingRule &rule,
                     ArrayRef<State> operands) {
    State mixed{RowKind::Mixed};
    std::optional<Place> place;
    for (auto [number, state] : llvm::enumerate(operands)) {
      if (state.kind != RowKind::Rows)
        continue;
      std::optional<Place> own =
          findPlace(rule, rule.operands[number][state.dim],
                    shapeOf(op->getOperand(number))[state.dim], state.inner);
      if (!own || (place && !(*place == *own)))
        return mixed;
      place = own;
    }
    bool isTwice = false;
    for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
      std::optional<State> found = findFactor(
          rule, rule.operands[number], shapeOf(operand), *place, isTwice);
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
  State transferTerms(Operation *op, const ShardingRule &rule,
                      ArrayRef<State> operands) {
    SmallVector<unsigned> terms;
    bool isSum = true, adds = isa<nn::AddOp, nn::SubOp>(op);
    for (auto [number, state] : llvm::enumerate(operands))
      if (isTerms(state.kind)) {
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
  bool isEqualAlong(Value value, const State &at) {
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
      std::optional<State> found = findFactor(
          rule, rule.operands[index], shapeOf(operand), *place, isTwice);
      if (isTwice || (found && !isEqualAlong(operand, *found)))
        return false;
    }
    return true;
  }

  /// Whether a sum counts the labels that are not a certain number: the same
  /// count of each row, if none of them is. The number is noted.
  bool isCount(Operation *op) {
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
  bool isMoved(Value value) {
    if (!isInteger(value))
      return false;
    if (isa<BlockArgument>(value))
      return states.lookup(value).kind == RowKind::Rows;
    if (getSplatValue(value))
      return true;
    Operation *op = value.getDefiningOp();
    return isa<nn::CastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp,
               nn::PadOp, nn::ConcatOp>(op) &&
           llvm::all_of(op->getOperands(),
                        [&](Value operand) { return isMoved(operand); });
  }

  func::FuncOp entry;
  ArrayRef<std::string> batchDims;
  bool countsAreFree, ofTokens;
  int64_t batch = 1;
  llvm::DenseMap<Value, State> states; ///< Of all that is not free.
  SmallVector<Attribute> inputs;
  llvm::SetVector<std::pair<StringAttr, int64_t>> equal;
  llvm::SetVector<int64_t> ignored;
};

} // namespace

std::optional<SeparateRows>
autodiff::findSeparateRows(func::FuncOp entry,
                           ArrayRef<std::string> batchDims) {
  // Counts that differ are exact; elsewhere it may be known that they do not.
  // An input may be as long as the batch and have no rows: nobody says so where
  // tokens alone are fed.
  for (bool countsAreFree : {false, true})
    for (bool ofTokens : {false, true})
      if (std::optional<SeparateRows> rows =
              RowFinder(entry, batchDims, countsAreFree, ofTokens).run())
        return rows;
  return std::nullopt;
}
