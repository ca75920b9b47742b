// What facts of rings mean: whose part a rank has, and what a term of rows, or
// of keys, is: attention to the keys, or of the rows, that it says.

#include "RuleProgram.h"

#include "dialects/NN/AttentionDims.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

/// The elements at some indices of a dimension.
static Tensor takeAlong(const Tensor &tensor, unsigned dim,
                        ArrayRef<int64_t> indices) {
  SmallVector<int64_t> shape(tensor.getShape());
  SmallVector<int64_t> strides = getRowMajorStrides(shape);
  int64_t size = shape[dim];
  shape[dim] = indices.size();
  Tensor taken(RankedTensorType::get(shape, tensor.getElementType()));
  SmallVector<int64_t> to = getRowMajorStrides(shape);
  for (int64_t at = 0; at < taken.getNumElements(); ++at) {
    int64_t outer = at / (to[dim] * shape[dim]),
            index = at / to[dim] % shape[dim], inner = at % to[dim];
    int64_t from = (outer * size + indices[index]) * strides[dim] + inner;
    taken.mutableFloats()[at] = tensor.floats()[from];
  }
  return taken;
}

RuleProgram::Point RuleProgram::getTurned(Point point, StringAttr axis,
                                          int64_t turn) {
  int64_t ranks = getSize(axis);
  for (Point other : getGroup(point, axis))
    if ((other.getCoordinate(axis) + turn) % ranks == point.getCoordinate(axis))
      return other;
  llvm_unreachable("an axis has all coordinates");
}

/// What the program's attention, or its gradient, would be of some rows and
/// keys alone, with numbers of a mask that say what each row sees of them.
Tensor RuleProgram::attend(OpResult result, ArrayRef<int64_t> rows,
                           ArrayRef<int64_t> keys, bool zeroRows,
                           bool isLeveled) {
  Operation *whole = result.getOwner();
  auto look = [&](auto op) -> Tensor {
    ArrayRef<int64_t> query = shapeOf(op.getQuery());
    // -1: the level, in front of the keys.
    SmallVector<int64_t> columns(isLeveled ? 1 : 0, -1);
    llvm::append_range(columns, keys);
    auto type = RankedTensorType::get(
        {query[0], query[1], int64_t(rows.size()), int64_t(columns.size())},
        f64);
    Tensor mask(type), given = op.getMask() ? getWhole(op.getMask()) : Tensor();
    ArrayRef<int64_t> shape = given ? given.getShape() : ArrayRef<int64_t>();
    int64_t next = 0;
    for (int64_t batch = 0; batch < query[0]; ++batch)
      for (int64_t head = 0; head < query[1]; ++head)
        for (int64_t row : rows)
          for (int64_t key : columns) {
            double &number = mask.mutableFloats()[next++];
            number = 0;
            auto getGiven = [&](int64_t key) {
              int64_t from = 0, at[] = {batch, head, row, key};
              for (auto [index, size] : llvm::zip_equal(at, shape))
                from = from * size + (size == 1 ? 0 : index);
              double found = given.asDouble(from);
              return given.isFloat() ? found
                     : found         ? 0
                                     : -std::numeric_limits<double>::infinity();
            };
            if (key < 0) {
              number = std::numeric_limits<double>::lowest();
              for (int64_t each = 0; each < shape[3]; ++each)
                number = std::max(number, getGiven(each));
              continue;
            }
            if (given)
              number = getGiven(key);
            if (op.getCausal() && key + int64_t(op.getColumnOffset()) >
                                      row + int64_t(op.getRowOffset()))
              number = -std::numeric_limits<double>::infinity();
          }
    Block block;
    OpBuilder builder(op->getContext());
    builder.setInsertionPointToEnd(&block);
    SmallVector<Tensor> operands;
    IRMapping mapping;
    for (Value operand : op->getOperands()) {
      if (operand == op.getMask())
        continue;
      bool isKeys = operand == op.getKey() || operand == op.getValue();
      operands.push_back(
          takeAlong(getWhole(operand), nn::kRowDim, isKeys ? keys : rows));
      mapping.map(operand, block.addArgument(operands.back().getType(), loc));
    }
    operands.push_back(mask);
    auto part = cast<decltype(op)>(builder.clone(*op, mapping));
    part.getMaskMutable().assign(block.addArgument(type, loc));
    part.setCausal(false);
    part.setZeroMaskedRows(zeroRows);
    for (auto [number, made] : llvm::enumerate(part->getResults())) {
      SmallVector<int64_t> held(shapeOf(made));
      bool isOfKeys = isa<nn::AttentionGradOp>(whole) && number > 0;
      held[nn::kRowDim] = isOfKeys ? keys.size() : rows.size();
      made.setType(cast<RankedTensorType>(made.getType()).clone(held));
    }
    SmallVector<Tensor> results;
    if (failed(evaluateOp(part, operands, EvaluationMode::Float64, results)))
      return {};
    return results[result.getResultNumber()];
  };
  if (auto attention = dyn_cast<nn::AttentionOp>(whole))
    return look(attention);
  return look(cast<nn::AttentionGradOp>(whole));
}

bool RuleProgram::isTrue(const Turned &turned, const Tensors &tensors) {
  ArrayRef<int64_t> shape = tensors.front().getShape();
  if (!isWellFormed(turned.piece, shape))
    return false;
  if (turned.terms.empty()) { // the part of another rank
    Tensors back(tensors.size());
    for (Point point : getPoints())
      back[number(getTurned(point, turned.axis, turned.turn))] =
          tensors[number(point)];
    return isTrue(turned.piece, back);
  }
  auto result = dyn_cast<OpResult>(turned.piece.logical);
  auto attention = result.getDefiningOp<nn::AttentionOp>();
  auto grad = result.getDefiningOp<nn::AttentionGradOp>();
  if (!attention && !grad)
    return false;
  bool isOfKeys = grad && result.getResultNumber() > 0;
  Operation *op = result.getOwner();
  int64_t wholeRows = shapeOf(op->getOperand(0))[nn::kRowDim],
          wholeKeys = shapeOf(op->getOperand(1))[nn::kRowDim];
  int64_t size = isOfKeys ? wholeRows : wholeKeys, split = 1;
  for (StringAttr axis : turned.others.axes)
    split *= getSize(axis);
  bool isComplete = int64_t(turned.terms.size()) == getSize(turned.axis);
  for (Point point : getPoints()) {
    Point owner = getTurned(point, turned.axis, turned.turn);
    // The rows or keys that it is a term of, on all ranks that have one.
    std::vector<Point> group = getGroup(point, turned.piece.partial);
    llvm::SmallSetVector<int64_t, 8> some;
    for (Point other : group)
      for (int64_t term : turned.terms) {
        std::vector<int64_t> indices =
            getIndices(turned.others, size, size / split,
                       getTurned(other, turned.axis, term));
        some.insert(indices.begin(), indices.end());
      }
    SmallVector<int64_t> all;
    for (int64_t at = 0; at < (isOfKeys ? wholeKeys : wholeRows); ++at)
      all.push_back(at);
    bool zeroRows = grad ? grad.getZeroMaskedRows()
                         : !isComplete || attention.getZeroMaskedRows();
    ArrayRef<int64_t> others = some.getArrayRef();
    Tensor found =
        isOfKeys ? attend(result, others, all, zeroRows, turned.isLeveled)
                 : attend(result, all, others, zeroRows, turned.isLeveled);
    if (!found)
      return false;
    Numbers expected = cut(found, turned.piece, shape, owner);
    for (auto [element, wanted] : llvm::enumerate(expected)) {
      double sum = 0;
      for (Point other : group)
        sum += tensors[number(other)].asDouble(element);
      if (wanted && !isClose(sum, *wanted))
        return false;
    }
  }
  return true;
}
