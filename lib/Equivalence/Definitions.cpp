// Ops that one rank's program may say by their definitions, written beside the
// logical program: what computes the definition computes the op. So is what an
// op makes of several matrices at once, each of them by itself.

#include "Logical.h"

#include "dialects/NN/NN.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

namespace {
/// Writes ops, each of which is the first of its kind.
struct Writer {
  OpBuilder builder;
  Location loc;
  llvm::function_ref<Value(Operation *)> write;

  template <typename Op, typename... Args> Value make(Args &&...args) {
    return write(Op::create(builder, loc, std::forward<Args>(args)...));
  }
  Value splat(ArrayRef<int64_t> shape, Type element, Attribute number) {
    auto type = RankedTensorType::get(shape, element);
    return make<nn::ConstantOp>(type, DenseElementsAttr::get(type, number));
  }
  Value splat(ArrayRef<int64_t> shape, Type element, int64_t value) {
    return splat(shape, element,
                 isa<FloatType>(element)
                     ? Attribute(builder.getFloatAttr(element, double(value)))
                     : Attribute(builder.getIntegerAttr(element, value)));
  }
  Value scale(Value value, double factor) {
    Type element = getElementTypeOrSelf(value);
    return make<nn::MulOp>(value, splat(shapeOf(value), element,
                                        builder.getFloatAttr(element, factor)));
  }
  Value multiply(Value lhs, Value rhs, bool transposeLhs, bool transposeRhs) {
    return make<nn::MatmulOp>(lhs, rhs, transposeLhs, transposeRhs);
  }
  Value reduce(nn::ReductionKind kind, Value value, int64_t dim) {
    SmallVector<int64_t> rows(shapeOf(value));
    rows.erase(rows.begin() + dim);
    return make<nn::ReduceOp>(
        RankedTensorType::get(rows, getElementTypeOrSelf(value)), kind, value,
        ArrayRef<int64_t>{dim});
  }
  Value expand(Value row, ArrayRef<int64_t> shape, int64_t dim) {
    SmallVector<int64_t> units(shapeOf(row));
    units.insert(units.begin() + dim, 1);
    Type element = getElementTypeOrSelf(row);
    row = make<nn::ReshapeOp>(RankedTensorType::get(units, element), row);
    return make<nn::BroadcastOp>(RankedTensorType::get(shape, element), row);
  }
  Value shift(Value logits, int64_t dim) {
    Value largest = reduce(nn::ReductionKind::max, logits, dim);
    return make<nn::SubOp>(logits, expand(largest, shapeOf(logits), dim));
  }
};
} // namespace

/// exp(x - max) / sum exp(x - max), or its logarithm.
static Value define(Writer &w, nn::SoftmaxOp op, Value input) {
  int64_t dim = op.getDim();
  Value shifted = w.shift(input, dim), powers = w.make<nn::ExpOp>(shifted),
        sum = w.reduce(nn::ReductionKind::sum, powers, dim);
  if (!op.getLog())
    return w.make<nn::DivOp>(powers, w.expand(sum, shapeOf(input), dim));
  return w.make<nn::SubOp>(
      shifted, w.expand(w.make<nn::LogOp>(sum), shapeOf(input), dim));
}

/// log sum exp(x - max) less x - max at the label; 0 where it is to be ignored.
/// Any other label must be there: it is looked up among all there are.
static Value define(Writer &w, nn::CrossEntropyOp op, Value logits,
                    Value labels) {
  ArrayRef<int64_t> shape = shapeOf(logits), rows = shapeOf(labels);
  int64_t dim = shape.size() - 1;
  Type i64 = w.builder.getI64Type();
  if (getElementTypeOrSelf(labels) != i64)
    labels = w.make<nn::CastOp>(RankedTensorType::get(rows, i64), labels);
  Value ignored =
      w.make<nn::CompareOp>(nn::ComparePredicate::eq, labels,
                            w.splat(rows, i64, op.getIgnoreIndex()));
  labels = w.make<nn::SelectOp>(ignored, w.splat(rows, i64, 0), labels);
  Value all =
      w.make<nn::IotaOp>(RankedTensorType::get(shape.back(), i64), 0, 0);
  labels = w.make<nn::GatherOp>(RankedTensorType::get(rows, i64), all, labels,
                                uint64_t(0), IntegerAttr(), true);
  Value isLabel = w.make<nn::CompareOp>(
      nn::ComparePredicate::eq,
      w.make<nn::IotaOp>(RankedTensorType::get(shape, i64), dim, 0),
      w.expand(labels, shape, dim));
  Type element = getElementTypeOrSelf(logits);
  Value shifted = w.shift(logits, dim),
        sum = w.reduce(nn::ReductionKind::sum, w.make<nn::ExpOp>(shifted), dim),
        label = w.reduce(
            nn::ReductionKind::sum,
            w.make<nn::SelectOp>(isLabel, shifted, w.splat(shape, element, 0)),
            dim),
        loss = w.make<nn::SubOp>(w.make<nn::LogOp>(sum), label);
  return w.make<nn::SelectOp>(ignored, w.splat(rows, element, 0), loss);
}

/// `steps` times aX + (bA + cA²)X, A being XXᵀ, or, of more rows than columns,
/// aX + X(bA + cA²) of XᵀX.
static Value define(Writer &w, nn::NewtonSchulzOp op, Value x) {
  ArrayRef<double> factors = op.getCoefficients();
  int64_t rows = shapeOf(x).end()[-2], columns = shapeOf(x).back();
  bool fromRight = rows > columns;
  for (uint64_t step = 0; step < op.getSteps(); ++step) {
    Value square = w.multiply(x, x, fromRight, !fromRight),
          fourth = w.multiply(square, square, false, false),
          sum = w.make<nn::AddOp>(w.scale(square, factors[1]),
                                  w.scale(fourth, factors[2])),
          product = fromRight ? w.multiply(x, sum, false, false)
                              : w.multiply(sum, x, false, false);
    x = w.make<nn::AddOp>(w.scale(x, factors[0]), product);
  }
  return x;
}

/// The op's result, which is the first of its kind.
Value Logical::write(Operation *op) {
  if (Operation *same = findSame(op)) {
    op->destroy();
    return same->getResult(0);
  }
  written.push_back(op);
  add(op);
  return op->getResult(0);
}

void Logical::define(Operation *op) {
  auto writeOp = [&](Operation *made) { return write(made); };
  Writer writer{OpBuilder(op->getContext()), op->getLoc(), writeOp};
  Value is;
  if (auto softmax = dyn_cast<nn::SoftmaxOp>(op))
    is = ::define(writer, softmax, rootOf(softmax.getInput()));
  else if (auto loss = dyn_cast<nn::CrossEntropyOp>(op))
    is = ::define(writer, loss, rootOf(loss.getLogits()),
                  rootOf(loss.getLabels()));
  else if (auto iterations = dyn_cast<nn::NewtonSchulzOp>(op))
    is = ::define(writer, iterations, rootOf(iterations.getInput()));
  if (is)
    sums[is] = op->getResult(0);
}

void Logical::stack(ArrayRef<nn::NewtonSchulzOp> ops, int64_t zeros) {
  nn::NewtonSchulzOp first = ops.front();
  auto writeOp = [&](Operation *made) { return write(made); };
  Writer writer{OpBuilder(first->getContext()), first->getLoc(), writeOp};
  Type element = first.getType().getElementType();
  SmallVector<int64_t> shape = {1};
  shape.append(llvm::to_vector(first.getType().getShape()));
  auto asRow = [&](Value matrix) {
    return writer.make<nn::ReshapeOp>(RankedTensorType::get(shape, element),
                                      rootOf(matrix));
  };
  SmallVector<Value> matrices;
  for (nn::NewtonSchulzOp op : ops)
    matrices.push_back(asRow(op.getInput()));
  if (zeros)
    matrices.push_back(
        writer.splat({zeros, shape[1], shape[2]}, element, int64_t(0)));
  Value results = writer.make<nn::NewtonSchulzOp>(
      writer.make<nn::ConcatOp>(matrices, /*dim=*/0), first.getSteps(),
      first.getCoefficients());
  define(results.getDefiningOp());
  SmallVector<int64_t> starts(3, 0), steps(3, 1);
  for (auto [number, op] : llvm::enumerate(ops)) {
    starts[0] = number;
    Value own = writer.make<nn::SliceOp>(results, starts, shape, steps);
    roots[own] = rootOf(asRow(op->getResult(0)));
  }
}
