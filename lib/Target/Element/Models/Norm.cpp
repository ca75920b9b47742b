// The scalar code of softmax, layer normalisation and cross-entropy: statistics
// of a row, made once for it, and an element from them.

#include "Group.h"
#include "Row.h"
#include "dialects/Interfaces/ElementSource.h"
#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace accel;
using Values = ElementBuilder::Values;

static Value floatOf(ImplicitLocOpBuilder &b, Type type, double value) {
  return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
}

/// The largest element of a row; NaN if any is.
static Value emitMaximum(Row &row) {
  return row.reduce(Combine::Max, [](Value x) { return x; });
}

/// exp(x - maximum)
static Value emitShifted(ElementBuilder &e, Value x, Value maximum) {
  return e.call(ScalarFunction::ExpOfNonPositive,
                Value(arith::SubFOp::create(e.builder(), x, maximum)));
}

namespace {
struct SoftmaxElement
    : ElementSourceOpInterface::ExternalModel<SoftmaxElement, nn::SoftmaxOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    auto softmax = cast<nn::SoftmaxOp>(op);
    int64_t dim = softmax.getDim();
    RankedTensorType input = typeOf(softmax.getInput());
    int64_t size = input.getDimSize(dim);
    Type type = e.getComputeType(input.getElementType());
    Values outer(index);
    outer.erase(outer.begin() + dim);
    // The maximum, what its exponentials are multiplied with (or, of the
    // logarithm, what is subtracted), and the exponentials if they are kept.
    Values row = e.once(op, outer, [&]() -> Values {
      Row elements(e, softmax.getInput(), size, [&](ArrayRef<Value> at) {
        Values full(index);
        full[dim] = at[0];
        return full;
      });
      Value maximum = emitMaximum(elements);
      Value kept = softmax.getLog() ? Value() : e.scratch(type, size);
      Value sum = elements.reduceAt(Combine::Sum,
                                    [&](Value x, ArrayRef<Value> at) -> Value {
                                      Value y = emitShifted(e, x, maximum);
                                      if (kept)
                                        e.storeScratch(y, kept, at[0]);
                                      return y;
                                    });
      ImplicitLocOpBuilder &b = e.builder();
      Value second =
          softmax.getLog()
              ? e.call(ScalarFunction::Log, sum)
              : Value(arith::DivFOp::create(b, floatOf(b, type, 1), sum));
      return {maximum, second, kept};
    });
    ImplicitLocOpBuilder &b = e.builder();
    if (row[2]) {
      Value y = e.loadScratch(row[2], index[dim], type);
      return arith::MulFOp::create(b, y, row[1]);
    }
    Value x = e.element(softmax.getInput(), index);
    if (softmax.getLog())
      return arith::SubFOp::create(b, arith::SubFOp::create(b, x, row[0]),
                                   row[1]);
    return arith::MulFOp::create(b, emitShifted(e, x, row[0]), row[1]);
  }
};

struct LayerNormElement
    : ElementSourceOpInterface::ExternalModel<LayerNormElement,
                                              nn::LayerNormOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    auto norm = cast<nn::LayerNormOp>(op);
    size_t dim = norm.getDim();
    RankedTensorType input = typeOf(norm.getInput());
    Type type = e.getComputeType(input.getElementType());
    ArrayRef<Value> outer = index.take_front(dim),
                    inner = index.drop_front(dim);
    // The mean, 1 / sqrt(variance + epsilon).
    Values statistics = e.once(op, outer, [&]() -> Values {
      Row row(e, norm.getInput(), input.getShape().drop_front(dim),
              [&](ArrayRef<Value> at) {
                Values full(outer);
                llvm::append_range(full, at);
                return full;
              });
      Value scale = floatOf(e.builder(), type, 1.0 / row.size());
      Value sum = row.reduce(Combine::Sum, [](Value x) { return x; });
      Value mean = arith::MulFOp::create(e.builder(), sum, scale);
      Value squares = row.reduce(Combine::Sum, [&](Value x) -> Value {
        ImplicitLocOpBuilder &b = e.builder();
        Value d = arith::SubFOp::create(b, x, mean);
        return arith::MulFOp::create(b, d, d, arith::FastMathFlags::contract);
      });
      ImplicitLocOpBuilder &b = e.builder();
      Value epsilon = floatOf(b, type, norm.getEpsilon().convertToDouble());
      Value variance = arith::MulFOp::create(b, squares, scale);
      Value root = e.call(ScalarFunction::Sqrt,
                          Value(arith::AddFOp::create(b, variance, epsilon)));
      return {mean, arith::DivFOp::create(b, floatOf(b, type, 1), root)};
    });
    Value x = e.element(norm.getInput(), index);
    Value scale = e.element(norm.getScale(), inner);
    Value bias = norm.getBias() ? e.element(norm.getBias(), inner) : Value();
    ImplicitLocOpBuilder &b = e.builder();
    Value y = arith::MulFOp::create(
        b, arith::SubFOp::create(b, x, statistics[0]), statistics[1]);
    if (bias)
      return LLVM::FMAOp::create(b, y, scale, bias);
    return arith::MulFOp::create(b, y, scale);
  }
};

struct CrossEntropyElement
    : ElementSourceOpInterface::ExternalModel<CrossEntropyElement,
                                              nn::CrossEntropyOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    auto loss = cast<nn::CrossEntropyOp>(op);
    RankedTensorType logits = typeOf(loss.getLogits());
    Type type = e.getComputeType(logits.getElementType());
    int64_t classes = logits.getShape().back();
    auto indexOf = [&](Value at) {
      Values full(index);
      full.push_back(at);
      return full;
    };
    Row row(e, loss.getLogits(), classes,
            [&](ArrayRef<Value> at) { return indexOf(at[0]); });
    Value maximum = emitMaximum(row);
    Value sum = row.reduce(Combine::Sum,
                           [&](Value x) { return emitShifted(e, x, maximum); });
    Value label = e.element(loss.getLabels(), index);
    ImplicitLocOpBuilder &b = e.builder();
    if (label.getType() != b.getI64Type())
      label = arith::ExtSIOp::create(b, b.getI64Type(), label);
    Value ignored = arith::CmpIOp::create(
        b, arith::CmpIPredicate::eq, label,
        e.constantIndex(static_cast<int64_t>(loss.getIgnoreIndex())));
    Value outside = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, label,
                                          e.constantIndex(classes));
    Value one = arith::ConstantIntOp::create(b, 1, 1);
    Value bad = arith::AndIOp::create(b, outside,
                                      arith::XOrIOp::create(b, ignored, one));
    e.refuse(bad, e.linearize(index, typeOf(loss.getLabels()).getShape()),
             label,
             /*least=*/0, classes, /*isLabel=*/true);
    Value place =
        arith::SelectOp::create(b, outside, e.constantIndex(0), label);
    Value x = e.element(loss.getLogits(), indexOf(place));
    Value logarithm = e.call(ScalarFunction::Log, sum);
    Value result = arith::SubFOp::create(
        b, arith::AddFOp::create(b, logarithm, maximum), x);
    return arith::SelectOp::create(b, ignored, floatOf(b, type, 0), result);
  }
};
} // namespace

void element::attachNormModels(MLIRContext *context) {
  nn::SoftmaxOp::attachInterface<SoftmaxElement>(*context);
  nn::LayerNormOp::attachInterface<LayerNormElement>(*context);
  nn::CrossEntropyOp::attachInterface<CrossEntropyElement>(*context);
}
