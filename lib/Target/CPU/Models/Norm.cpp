// The scalar code of softmax, layer normalisation and cross-entropy: statistics
// of a row, made once for it, and an element from them.

#include "Group.h"
#include "Row.h"
#include "dialects/Interfaces/ElementSource.h"
#include "dialects/NN/NN.h"
#include "lib/Target/CPU/ScalarMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace accel;
using Values = RowEmitter::Values;

static constexpr arith::FastMathFlags kReorder =
    arith::FastMathFlags::reassoc | arith::FastMathFlags::contract |
    arith::FastMathFlags::nsz;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static Value floatOf(ImplicitLocOpBuilder &b, Type type, double value) {
  return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
}

/// The largest element of a row; NaN if any is.
static Value emitMaximum(RowEmitter &e, Row &row, Type type) {
  Value least =
      floatOf(e.builder(), type, -std::numeric_limits<double>::infinity());
  return row.loop(least, [&](Value x, ValueRange carried) -> Values {
    return {arith::MaximumFOp::create(e.builder(), carried[0], x,
                                      arith::FastMathFlags::nsz)};
  })[0];
}

namespace {
struct SoftmaxElement
    : ElementSourceOpInterface::ExternalModel<SoftmaxElement, nn::SoftmaxOp> {
  Value emitElement(Operation *op, RowEmitter &e, ArrayRef<Value> index) const {
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
      Value maximum = emitMaximum(e, elements, type);
      Value kept = softmax.getLog() ? Value() : e.scratch(type, size);
      Value at = e.constantIndex(0);
      Value zero = floatOf(e.builder(), type, 0);
      Value sum;
      if (kept) {
        sum = e.loop(at, e.constantIndex(size), zero,
                     [&](Value place, ValueRange carried) -> Values {
                       Value x = elements.read({place});
                       Value y = emitShifted(e.builder(), x, maximum);
                       e.storeScratch(y, kept, place);
                       return {arith::AddFOp::create(e.builder(), carried[0], y,
                                                     kReorder)};
                     })[0];
      } else {
        sum = elements.loop(zero, [&](Value x, ValueRange carried) -> Values {
          Value y = emitShifted(e.builder(), x, maximum);
          return {arith::AddFOp::create(e.builder(), carried[0], y, kReorder)};
        })[0];
      }
      ImplicitLocOpBuilder &b = e.builder();
      Value second =
          softmax.getLog()
              ? emitLog(b, sum)
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
    return arith::MulFOp::create(b, emitShifted(b, x, row[0]), row[1]);
  }

  static Value emitShifted(ImplicitLocOpBuilder &b, Value x, Value maximum) {
    return emitExp(b, arith::SubFOp::create(b, x, maximum),
                   /*nonPositive=*/true);
  }
};

struct LayerNormElement
    : ElementSourceOpInterface::ExternalModel<LayerNormElement,
                                              nn::LayerNormOp> {
  Value emitElement(Operation *op, RowEmitter &e, ArrayRef<Value> index) const {
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
      Value zero = floatOf(e.builder(), type, 0);
      Value scale = floatOf(e.builder(), type, 1.0 / row.size());
      Value sum = row.loop(zero, [&](Value x, ValueRange carried) -> Values {
        return {arith::AddFOp::create(e.builder(), carried[0], x, kReorder)};
      })[0];
      Value mean = arith::MulFOp::create(e.builder(), sum, scale);
      Value squares =
          row.loop(zero, [&](Value x, ValueRange carried) -> Values {
            ImplicitLocOpBuilder &b = e.builder();
            Value d = arith::SubFOp::create(b, x, mean);
            Value square =
                arith::MulFOp::create(b, d, d, arith::FastMathFlags::contract);
            return {arith::AddFOp::create(b, carried[0], square, kReorder)};
          })[0];
      ImplicitLocOpBuilder &b = e.builder();
      Value epsilon = floatOf(b, type, norm.getEpsilon().convertToDouble());
      Value variance = arith::MulFOp::create(b, squares, scale);
      Value root = emitSqrt(b, arith::AddFOp::create(b, variance, epsilon));
      return {mean, arith::DivFOp::create(b, floatOf(b, type, 1), root)};
    });
    Value x = e.element(norm.getInput(), index);
    Value scale = e.element(norm.getScale(), inner);
    Value bias = norm.getBias() ? e.element(norm.getBias(), inner) : Value();
    ImplicitLocOpBuilder &b = e.builder();
    Value y = arith::MulFOp::create(
        b, arith::SubFOp::create(b, x, statistics[0]), statistics[1]);
    if (bias)
      return emitFma(b, y, scale, bias);
    return arith::MulFOp::create(b, y, scale);
  }
};

struct CrossEntropyElement
    : ElementSourceOpInterface::ExternalModel<CrossEntropyElement,
                                              nn::CrossEntropyOp> {
  Value emitElement(Operation *op, RowEmitter &e, ArrayRef<Value> index) const {
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
    Value maximum = emitMaximum(e, row, type);
    Value zero = floatOf(e.builder(), type, 0);
    Value sum = row.loop(zero, [&](Value x, ValueRange carried) -> Values {
      ImplicitLocOpBuilder &b = e.builder();
      Value y = emitExp(b, arith::SubFOp::create(b, x, maximum),
                        /*nonPositive=*/true);
      return {arith::AddFOp::create(b, carried[0], y, kReorder)};
    })[0];
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
    Value result = arith::SubFOp::create(
        b, arith::AddFOp::create(b, emitLog(b, sum), maximum), x);
    return arith::SelectOp::create(b, ignored, zero, result);
  }
};
} // namespace

void cpu::attachNormModels(MLIRContext *context) {
  nn::SoftmaxOp::attachInterface<SoftmaxElement>(*context);
  nn::LayerNormOp::attachInterface<LayerNormElement>(*context);
  nn::CrossEntropyOp::attachInterface<CrossEntropyElement>(*context);
}
