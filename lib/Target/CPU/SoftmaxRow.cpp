// The rows between attention's products, loop by loop. A row is short, and its
// columns are what LLVM vectorises: the loops are as few as they can be, and
// each element is stored where it was loaded.

#include "SoftmaxRow.h"

#include "ScalarMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace accel;
using namespace accel::cpu;
using Values = RowEmitter::Values;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

SoftmaxRow::SoftmaxRow(RowEmitter &e, const SoftmaxDesc &desc,
                       const SoftmaxArguments &at, Value row)
    : e(e), desc(desc), at(at), compute(e.getComputeType(desc.type)), row(row) {
  ImplicitLocOpBuilder &b = builder();
  zero = e.constantIndex(0);
  begin = arith::MulIOp::create(b, row, at.scoreStride);
  resultBegin = arith::MulIOp::create(b, row, at.resultStride);
  maskBegin = e.mul(row, desc.maskQuery);
  if (desc.levels) {
    level = emitMask(maskBegin);
    maskBegin = arith::AddIOp::create(b, maskBegin, e.constantIndex(1));
  }
  visible = at.columns;
  if (desc.causal) {
    Value end = arith::AddIOp::create(b, at.visible, row);
    visible = arith::MinSIOp::create(b, arith::MaxSIOp::create(b, end, zero),
                                     at.columns);
  }
}

Value SoftmaxRow::place(Value begin, Value column) {
  return arith::AddIOp::create(builder(), begin, column);
}

Value SoftmaxRow::constant(double value) {
  return arith::ConstantOp::create(builder(),
                                   builder().getFloatAttr(compute, value));
}

Value SoftmaxRow::addUp(Value sum, Value term) {
  return arith::AddFOp::create(builder(), sum, term,
                               arith::FastMathFlags::reassoc |
                                   arith::FastMathFlags::nsz);
}

Value SoftmaxRow::isNothing(Value largest) {
  return arith::CmpFOp::create(builder(), arith::CmpFPredicate::OEQ, largest,
                               constant(-kInfinity));
}

/// A number of a mask of floats, or whether a score is let through.
Value SoftmaxRow::emitMask(Value where) {
  ImplicitLocOpBuilder &b = builder();
  Value m = e.load(at.mask, where, desc.mask);
  if (desc.mask.isInteger(1) || m.getType() == compute)
    return m;
  if (m.getType().getIntOrFloatBitWidth() < compute.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(b, compute, m);
  return arith::TruncFOp::create(b, compute, m);
}

/// The scaled score, -infinity where the mask hides it, counted from its row's
/// level.
Value SoftmaxRow::emitScore(Value column) {
  ImplicitLocOpBuilder &b = builder();
  Value x = e.load(at.scores, place(begin, column), compute);
  x = arith::MulFOp::create(b, x, emitFloat(b, x, desc.scale));
  if (!desc.mask)
    return x;
  Value m = emitMask(place(maskBegin, e.mul(column, desc.maskKey)));
  if (desc.mask.isInteger(1))
    return arith::SelectOp::create(b, m, x, emitFloat(b, x, -kInfinity));
  x = arith::AddFOp::create(b, x, m);
  return desc.levels ? arith::SubFOp::create(b, x, level).getResult() : x;
}

/// The exponential of a score less the row's log-sum-exp.
Value SoftmaxRow::emitProbability(Value column, Value logSumExp) {
  ImplicitLocOpBuilder &b = builder();
  Value x = arith::SubFOp::create(b, emitScore(column), logSumExp);
  // A score is no larger than its row's log-sum-exp, but its product may be
  // rounded otherwise than the forward's.
  Value none = constant(0);
  Value above = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, none);
  x = arith::SelectOp::create(b, above, none, x);
  return emitExp(b, x, /*nonPositive=*/true);
}

void SoftmaxRow::fillHidden(Value value) {
  e.loop(visible, at.columns, {}, [&](Value column, ValueRange) {
    Value resultAt = place(resultBegin, column);
    e.store(value, at.probabilities, resultAt, desc.type);
    if (desc.gradient)
      e.store(value, at.scoreSlopes, resultAt, desc.type);
    return Values();
  });
}

std::pair<Value, Value> SoftmaxRow::emitForward() {
  ImplicitLocOpBuilder &b = builder();
  Value maximum =
      e.loop(zero, visible, constant(-kInfinity),
             [&](Value column, ValueRange carried) -> Values {
               Value x = emitScore(column);
               e.store(x, at.scores, place(begin, column), compute);
               return {arith::MaximumFOp::create(builder(), carried[0], x,
                                                 arith::FastMathFlags::nsz)};
             })[0];
  // Nothing is let through: all exponentials are to be 0 rather than NaN.
  Value nothing = isNothing(maximum);
  Value shift = maximum;
  if (desc.zeroMaskedRows)
    shift = arith::SelectOp::create(b, nothing, constant(0), maximum);
  Value sum = e.loop(
      zero, visible, constant(0),
      [&](Value column, ValueRange carried) -> Values {
        Value where = place(begin, column);
        Value x = e.load(at.scores, where, compute);
        Value y = emitExp(builder(), arith::SubFOp::create(builder(), x, shift),
                          /*nonPositive=*/true);
        e.store(y, at.scores, where, compute);
        return {addUp(carried[0], y)};
      })[0];
  Value factor = arith::DivFOp::create(b, constant(1), sum);
  Value hidden = constant(0);
  if (desc.zeroMaskedRows)
    factor = arith::SelectOp::create(b, nothing, constant(0), factor);
  else
    hidden = arith::SelectOp::create(b, nothing, constant(kNan), hidden);
  e.loop(zero, visible, {}, [&](Value column, ValueRange) {
    Value y = e.load(at.scores, place(begin, column), compute);
    y = arith::MulFOp::create(builder(), y, factor);
    e.store(y, at.probabilities, place(resultBegin, column), desc.type);
    return Values();
  });
  fillHidden(hidden);
  return {maximum, sum};
}

Value SoftmaxRow::emitCommonSlope() {
  Value first = arith::MulIOp::create(builder(), row, at.outputStride);
  Value gradientFirst = e.mul(row, desc.width);
  Value sum = e.loop(
      zero, e.constantIndex(desc.width), constant(0),
      [&](Value column, ValueRange carried) -> Values {
        Value output = e.load(at.outputs, place(first, column), desc.type);
        Value gradient =
            e.load(at.gradients, place(gradientFirst, column), desc.type);
        return {addUp(carried[0],
                      arith::MulFOp::create(builder(), output, gradient))};
      })[0];
  if (desc.logSumExp)
    sum = arith::SubFOp::create(builder(), sum,
                                e.load(at.logSumExpGradients, row, compute));
  return sum;
}

void SoftmaxRow::emitGradient() {
  ImplicitLocOpBuilder &b = builder();
  Value shift = e.load(at.logSumExps, row, compute);
  Value nothing = isNothing(shift);
  Value common = emitCommonSlope();
  // Where nothing is let through, probabilities are 0 or NaN.
  Value hidden = constant(0);
  if (desc.zeroMaskedRows) {
    shift = arith::SelectOp::create(b, nothing, constant(kInfinity), shift);
    common = arith::SelectOp::create(b, nothing, hidden, common);
  } else {
    hidden = arith::SelectOp::create(b, nothing, constant(kNan), hidden);
    shift = arith::SelectOp::create(b, nothing, hidden, shift);
  }
  // What numbers of a mask leave of a row may be scores that are far from 0 and
  // alike, and a log-sum-exp in which their number is lost: that is found
  // again.
  bool mayLose = desc.mask && !desc.mask.isInteger(1);
  Value factor;
  if (mayLose) {
    Value sum = e.loop(zero, visible, constant(0),
                       [&](Value column, ValueRange carried) -> Values {
                         Value y = emitProbability(column, shift);
                         e.store(y, at.scores, place(begin, column), compute);
                         return {addUp(carried[0], y)};
                       })[0];
    Value one = constant(1);
    Value above = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, sum, one);
    factor = arith::DivFOp::create(b, one,
                                   arith::SelectOp::create(b, above, sum, one));
  }
  e.loop(zero, visible, {}, [&](Value column, ValueRange) {
    ImplicitLocOpBuilder &inner = builder();
    Value resultAt = place(resultBegin, column), y;
    if (mayLose)
      y = arith::MulFOp::create(
          inner, e.load(at.scores, place(begin, column), compute), factor);
    else
      y = emitProbability(column, shift);
    Value slope = e.load(at.slopes, place(begin, column), compute);
    slope = arith::SubFOp::create(inner, slope, common);
    slope = arith::MulFOp::create(inner, slope, y);
    slope = arith::MulFOp::create(inner, slope,
                                  emitFloat(inner, slope, desc.scale));
    e.store(y, at.probabilities, resultAt, desc.type);
    e.store(slope, at.scoreSlopes, resultAt, desc.type);
    return Values();
  });
  fillHidden(hidden);
}
