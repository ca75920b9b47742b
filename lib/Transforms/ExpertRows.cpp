// Weights as a table of all rows and experts; experts on the rows that chose
// them.

#include "ExpertRows.h"

#include "dialects/NN/TensorTypes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::transforms;

static int64_t countOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

static SmallVector<int64_t> append(ArrayRef<int64_t> shape, int64_t size) {
  SmallVector<int64_t> longer(shape);
  longer.push_back(size);
  return longer;
}

Value ExpertRows::reshape(Value value, ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  return nn::ReshapeOp::create(b, loc, typeOf(value).clone(shape), value);
}

Value ExpertRows::broadcast(Value value, ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  return nn::BroadcastOp::create(b, loc, typeOf(value).clone(shape), value);
}

/// The same op on other operands, of another shape.
static Value cloneOn(OpBuilder &b, Operation *op, ArrayRef<Value> operands,
                     ArrayRef<int64_t> shape) {
  Operation *clone = b.clone(*op);
  clone->setOperands(operands);
  Value result = clone->getResult(0);
  result.setType(cast<RankedTensorType>(result.getType()).clone(shape));
  return result;
}

static bool isZero(Value value) {
  return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
}

/// Of a term the factor that has the parameters; the others are `weights`.
Value ExpertRows::findExpert(Value term) {
  auto isWeight = [&](Value value) {
    return terms.varies(value) && !terms.variesByParameter(value);
  };
  while (Operation *op = term.getDefiningOp()) {
    if (auto mul = dyn_cast<nn::MulOp>(op);
        mul && (isWeight(mul.getLhs()) || isWeight(mul.getRhs()))) {
      bool isLeft = isWeight(mul.getLhs());
      weights.push_back(isLeft ? mul.getLhs() : mul.getRhs());
      term = isLeft ? mul.getRhs() : mul.getLhs();
    } else if (auto select = dyn_cast<nn::SelectOp>(op);
               select && isWeight(select.getCondition()) &&
               matchPattern(select.getOnFalse(), m_AnyZeroFloat())) {
      weights.push_back(select.getCondition());
      term = select.getOnTrue();
    } else if (isa<nn::ReshapeOp>(op) && !shapeOf(op->getOperand(0)).empty() &&
               shapeOf(op->getOperand(0)).back() == shapeOf(term).back()) {
      term = op->getOperand(0);
    } else {
      break;
    }
  }
  return weights.empty() || !terms.variesByParameter(term) ? Value() : term;
}

/// Notes what tells the terms apart: from 0 on, each once, and the same
/// wherever they are numbered.
bool ExpertRows::number(ArrayRef<int64_t> numbers) {
  SmallVector<size_t> found(numbers.size(), numbers.size());
  for (auto [term, number] : llvm::enumerate(numbers))
    if (number >= 0 && number < count())
      found[number] = term;
  if (llvm::is_contained(found, numbers.size()))
    return false;
  if (order.empty())
    order = found;
  return order == found;
}

/// What `value` is in all terms, along a dimension of its own, the last; null
/// if there is no op that says so.
Value ExpertRows::spread(Value value) {
  if (auto known = spreads.find(value); known != spreads.end())
    return known->second;
  SmallVector<int64_t> shape = append(shapeOf(value), count());
  auto make = [&]() -> Value {
    SplatElementsAttr equal;
    if (!terms.varies(value) && matchPattern(value, m_Constant(&equal)))
      return nn::ConstantOp::create(
          b, loc, equal.resizeSplat(typeOf(value).clone(shape)));
    if (!terms.varies(value))
      return broadcast(reshape(value, append(shapeOf(value), 1)), shape);
    if (getNumber(value)) {
      SmallVector<int64_t> numbers;
      for (Value each : terms.getAll(value))
        numbers.push_back(getNumber(each).value_or(-1));
      if (!number(numbers))
        return nullptr;
      auto all = llvm::to_vector(llvm::seq<int64_t>(0, count()));
      Value constant = nn::ConstantOp::create(b, loc, b.getI64TensorAttr(all));
      return broadcast(constant, shape);
    }
    Operation *op = value.getDefiningOp();
    if (auto slice = dyn_cast_if_present<nn::SliceOp>(op))
      return spreadSlice(slice);
    if (!op || !isPure(op) ||
        !(op->hasTrait<nn::Elementwise>() ||
          isa<nn::ReshapeOp, nn::BroadcastOp, nn::ReduceOp, nn::CumsumOp,
              nn::TransposeOp>(op)))
      return nullptr;
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      if (!operands.emplace_back(spread(operand)))
        return nullptr;
    if (auto transpose = dyn_cast<nn::TransposeOp>(op))
      return nn::TransposeOp::create(
          b, loc, typeOf(value).clone(shape), operands[0],
          append(transpose.getPermutation(), shape.size() - 1));
    return cloneOn(b, op, operands, shape);
  };
  Value made = make();
  return spreads[value] = made;
}

/// A column of a table, another in each term.
Value ExpertRows::spreadSlice(nn::SliceOp slice) {
  ArrayRef<int64_t> table = shapeOf(slice.getInput());
  SmallVector<int64_t> column(table);
  column.back() = 1;
  if (table.back() != count() || slice.getSizes() != ArrayRef(column))
    return nullptr;
  SmallVector<int64_t> numbers;
  for (Value each : terms.getAll(slice.getResult()))
    numbers.push_back(each.getDefiningOp<nn::SliceOp>().getStarts().back());
  return number(numbers) ? reshape(slice.getInput(), append(column, count()))
                         : Value();
}

/// A factor of the terms as a table [rows, experts].
Value ExpertRows::weigh(Value weight) {
  SmallVector<int64_t> narrow(shapeOf(weight));
  narrow.back() = 1;
  auto wide = weight.getDefiningOp<nn::BroadcastOp>();
  if (wide && shapeOf(wide.getInput()) == ArrayRef(narrow))
    weight = wide.getInput();
  Value table = countOf(weight) == rows ? spread(weight) : Value();
  Type element = getElementTypeOrSelf(terms.getFirst().getType());
  if (table && typeOf(table).getElementType() != element)
    table = nn::CastOp::create(b, loc, typeOf(table).clone(element), table);
  return table ? reshape(table, {rows, count()}) : Value();
}

/// Whether each row of an index has `places` different experts.
bool ExpertRows::isChoice(Value index, int64_t places) {
  if (!typeOf(index).getElementType().isInteger(64) ||
      countOf(index) != rows * places)
    return false;
  while (Operation *op = index.getDefiningOp()) {
    if (auto top = dyn_cast<nn::TopKOp>(op))
      return shapeOf(top.getInput()).back() == count() &&
             (places == 1 || (countOf(top.getInput()) == rows * count() &&
                              static_cast<int64_t>(top.getK()) == places));
    // One of several places is one as well.
    auto slice = dyn_cast<nn::SliceOp>(op);
    if (!isa<nn::ReshapeOp>(op) && !(slice && places == 1))
      return false;
    index = op->getOperand(0);
  }
  return false;
}

/// The numbers that one side of a comparison has along its last dimension.
static bool countsColumns(Value value) {
  while (auto wide = value.getDefiningOp<nn::BroadcastOp>())
    value = wide.getInput();
  DenseIntElementsAttr numbers;
  if (!matchPattern(value, m_Constant(&numbers)) || numbers.empty() ||
      shapeOf(value).back() != numbers.getNumElements())
    return false;
  for (auto [place, each] : llvm::enumerate(numbers.getValues<APInt>()))
    if (each.getSExtValue() != static_cast<int64_t>(place))
      return false;
  return true;
}

/// What tells of which experts alone a weight is not zero, `places` of them
/// for each row; null if nothing does. `column`: of a table of all experts,
/// along the last dimension, instead of one term's.
/// `tried`: where nothing was found, for which places and along which
/// dimension.
using Tried = llvm::DenseSet<std::pair<Value, int64_t>>;
static Value findChoice(const AlikeTerms &terms, Value weight, int64_t &places,
                        bool column, Tried &tried) {
  Operation *op = weight.getDefiningOp();
  if (!op || !tried.insert({weight, 2 * places + column}).second)
    return nullptr; // what is found at first ends the search
  auto look = [&](Value value) {
    return findChoice(terms, value, places, column, tried);
  };
  if (auto compare = dyn_cast<nn::CompareOp>(op)) {
    if (compare.getPredicate() == nn::ComparePredicate::ne &&
        isZero(compare.getRhs()))
      return look(compare.getLhs());
    if (compare.getPredicate() != nn::ComparePredicate::eq)
      return nullptr;
    for (auto [index, number] :
         {std::pair(compare.getLhs(), compare.getRhs()),
          std::pair(compare.getRhs(), compare.getLhs())}) {
      if (!column && getNumber(number) && terms.varies(number) &&
          !terms.varies(index))
        return index;
      auto wide = index.getDefiningOp<nn::BroadcastOp>();
      SmallVector<int64_t> narrow(shapeOf(index));
      narrow.back() = 1;
      if (column && wide && shapeOf(wide.getInput()) == ArrayRef(narrow) &&
          countsColumns(number))
        return wide.getInput();
    }
    return nullptr;
  }
  if (isa<nn::CastOp>(op) || (isa<nn::ReshapeOp>(op) && !column))
    return look(op->getOperand(0));
  if (isa<nn::MulOp, nn::AndOp>(op)) {
    int64_t before = places;
    if (Value found = look(op->getOperand(0)))
      return found;
    places = before;
    return look(op->getOperand(1));
  }
  if (auto select = dyn_cast<nn::SelectOp>(op))
    return isZero(select.getOnFalse()) ? look(select.getCondition()) : Value();
  if (auto reduce = dyn_cast<nn::ReduceOp>(op)) {
    ArrayRef<int64_t> shape = shapeOf(reduce.getInput());
    int64_t dim = static_cast<int64_t>(shape.size()) - 1 - column;
    if (places != 1 || reduce.getDims() != ArrayRef<int64_t>{dim} ||
        (reduce.getKind() != nn::ReductionKind::sum &&
         reduce.getKind() != nn::ReductionKind::max))
      return nullptr;
    places = shape[dim];
    return look(reduce.getInput());
  }
  if (auto slice = dyn_cast<nn::SliceOp>(op); slice && !column)
    return findChoice(terms, slice.getInput(), places, /*column=*/true, tried);
  return nullptr;
}

Value ExpertRows::chosenBy(Value weight, int64_t &places) {
  if (auto wide = weight.getDefiningOp<nn::BroadcastOp>())
    weight = wide.getInput();
  places = 1;
  Tried tried;
  return findChoice(terms, weight, places, /*column=*/false, tried);
}

/// Settles which experts each row has: those that `index` names, or all.
void ExpertRows::choose(Value chosen) {
  if (chosen) {
    index = reshape(chosen, {rows, choices});
    groups = reshape(chosen, {rows * choices});
    return;
  }
  choices = count();
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, choices));
  Value numbers = nn::ConstantOp::create(b, loc, b.getI64TensorAttr(all));
  groups = reshape(broadcast(numbers, {rows, choices}), {rows * choices});
}

/// Rows of all terms, for each choice again.
Value ExpertRows::repeat(Value value) {
  ArrayRef<int64_t> shape = shapeOf(value);
  if (shape.empty() || terms.varies(value) ||
      countOf(value) != rows * shape.back())
    return nullptr;
  int64_t width = shape.back();
  SplatElementsAttr equal;
  if (matchPattern(value, m_Constant(&equal)))
    return nn::ConstantOp::create(
        b, loc,
        equal.resizeSplat(typeOf(value).clone({rows * choices, width})));
  Value each =
      broadcast(reshape(value, {rows, 1, width}), {rows, choices, width});
  return reshape(each, {rows * choices, width});
}

Value ExpertRows::stackOf(Value parameter) {
  for (auto [known, stack] : stacks)
    if (known == parameter)
      return stack->getResult(0);
  SmallVector<int64_t> shape{count()};
  llvm::append_range(shape, shapeOf(parameter));
  auto stack = UnrealizedConversionCastOp::create(
      b, loc, typeOf(parameter).clone(shape), ValueRange());
  stacks.emplace_back(parameter, stack);
  return stack.getResult(0);
}

Value ExpertRows::multiply(nn::MatmulOp op) {
  Value matrix = op.getRhs();
  bool transposed = op.getTransposeRhs();
  Value rows = !op.getTransposeLhs() && shapeOf(matrix).size() == 2
                   ? compute(op.getLhs())
                   : Value();
  if (!rows)
    return nullptr;
  if (!terms.varies(matrix))
    return nn::MatmulOp::create(b, op.getLoc(), rows, matrix,
                                /*transpose_lhs=*/false, transposed);
  if (auto transpose = matrix.getDefiningOp<nn::TransposeOp>()) {
    transposed ^= transpose.getPermutation() == ArrayRef<int64_t>{1, 0};
    matrix = transpose.getInput();
  }
  if (!isStateArgument(matrix))
    return nullptr;
  return nn::GroupedMatmulOp::create(b, op.getLoc(), rows, stackOf(matrix),
                                     groups, transposed);
}

/// A vector that is added to all rows: so it is a matrix times a row of one.
Value ExpertRows::addBias(nn::BroadcastOp op) {
  Value vector = op.getInput();
  int64_t width = shapeOf(op.getResult()).back();
  if (!isStateArgument(vector) || shapeOf(vector) != ArrayRef{width} ||
      countOf(op.getResult()) != rows * width)
    return nullptr;
  auto type = typeOf(vector).clone({rows * choices, 1});
  Value ones = nn::ConstantOp::create(
      b, op.getLoc(),
      DenseElementsAttr::get(type, b.getFloatAttr(type.getElementType(), 1)));
  return nn::GroupedMatmulOp::create(
      b, op.getLoc(), ones, reshape(stackOf(vector), {count(), 1, width}),
      groups, /*transpose_rhs=*/false);
}

/// What a value repeats, or sees otherwise.
static Value getNarrow(Value value) {
  while (isa_and_present<nn::BroadcastOp, nn::ReshapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// An expert's value on the rows that were dealt out; null where its rows are
/// not computed each by itself.
Value ExpertRows::compute(Value value) {
  if (auto known = computed.find(value); known != computed.end())
    return known->second;
  auto make = [&]() -> Value {
    // Rows that did not choose the expert are not computed.
    if (auto select = value.getDefiningOp<nn::SelectOp>();
        select && index && llvm::any_of(weights, [&](Value weight) {
          return getNarrow(weight) == getNarrow(select.getCondition());
        }))
      return compute(select.getOnTrue());
    if (!terms.variesByParameter(value))
      return repeat(value);
    Operation *op = value.getDefiningOp();
    ArrayRef<int64_t> shape = shapeOf(value);
    if (!op || shape.empty() || countOf(value) != rows * shape.back())
      return nullptr;
    if (auto matmul = dyn_cast<nn::MatmulOp>(op))
      return multiply(matmul);
    if (auto bias = dyn_cast<nn::BroadcastOp>(op))
      return addBias(bias);
    // From here on, what keeps rows apart.
    for (Value operand : op->getOperands())
      if (shapeOf(operand).empty() ||
          countOf(operand) != rows * shapeOf(operand).back())
        return nullptr;
    SmallVector<Value> operands;
    bool keeps = op->hasTrait<nn::Elementwise>() ||
                 isa<nn::SliceOp, nn::ConcatOp, nn::ReshapeOp>(op);
    for (Value operand : op->getOperands())
      if (!keeps || !isPure(op) || !operands.emplace_back(compute(operand)))
        return nullptr;
    int64_t all = rows * choices, width = shape.back();
    if (isa<nn::ReshapeOp>(op))
      return operands.front();
    if (auto concat = dyn_cast<nn::ConcatOp>(op))
      return nn::ConcatOp::create(b, op->getLoc(), operands, /*dim=*/1);
    if (auto slice = dyn_cast<nn::SliceOp>(op)) {
      int64_t start = slice.getStarts().back(), step = slice.getSteps().back();
      return nn::SliceOp::create(
          b, op->getLoc(), operands.front(), ArrayRef<int64_t>{0, start},
          ArrayRef<int64_t>{all, width}, ArrayRef<int64_t>{1, step});
    }
    return cloneOn(b, op, operands, {all, width});
  };
  Value made = make();
  return computed[value] = made;
}

Value ExpertRows::build() {
  Value term = terms.getFirst();
  // Sums over rows, and other ways to see them, of the sum of all terms.
  SmallVector<Operation *> behind;
  while (Operation *op = term.getDefiningOp()) {
    auto reduce = dyn_cast<nn::ReduceOp>(op);
    if (!isa<nn::ReshapeOp, nn::TransposeOp>(op) &&
        !(reduce && reduce.getKind() == nn::ReductionKind::sum))
      break;
    behind.push_back(op);
    term = op->getOperand(0);
  }
  Value expert = findExpert(term);
  if (!expert || shapeOf(term).empty())
    return nullptr;
  int64_t width = shapeOf(term).back();
  rows = width == 0 ? 0 : countOf(term) / width;
  Value table;
  for (Value weight : weights) {
    Value each = weigh(weight);
    if (!each)
      return nullptr;
    table = table ? nn::MulOp::create(b, loc, table, each) : each;
  }
  if (order.empty())
    return nullptr;
  Value chosen;
  for (Value weight : weights)
    if (Value found = chosen ? Value() : chosenBy(weight, choices))
      chosen = isChoice(found, choices) ? found : Value();
  choose(chosen);
  if (index)
    table = nn::GatherNdOp::create(
        b, loc, table, reshape(index, {rows, choices, 1}), /*batch_dims=*/1);
  Value result = compute(expert);
  if (!result || shapeOf(result).back() != width)
    return nullptr;
  Value weight =
      broadcast(reshape(table, {rows * choices, 1}), {rows * choices, width});
  result = reshape(nn::MulOp::create(b, loc, result, weight),
                   {rows, choices, width});
  result = nn::ReduceOp::create(b, loc, nn::ReductionKind::sum, result,
                                ArrayRef<int64_t>{1});
  result = reshape(result, shapeOf(term));
  for (Operation *op : llvm::reverse(behind))
    result = cloneOn(b, op, {result}, shapeOf(op->getResult(0)));
  return result;
}
