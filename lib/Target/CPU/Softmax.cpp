// The softmax between attention's products, on a block of score rows: scale,
// mask, hide what is causal, exponentials, normalise; and, for the gradient,
// which has the rows' log-sum-exps, probabilities and their slopes in one pass.
// The runtime says where the block is (SoftmaxRows in
// runtime/Device/CPU/Gemm/Attention.h).

#include "EmitKernel.h"

#include "ScalarMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace accel;
using namespace accel::cpu;
using Values = RowEmitter::Values;

/// What both commands say alike.
template <class AttentionLike>
static SoftmaxDesc describe(AttentionLike attention) {
  SoftmaxDesc desc;
  desc.type = attention.getQuery().getElement();
  desc.scale = attention.getScale().convertToDouble();
  desc.causal = attention.getCausal();
  desc.diagonal = attention.getDiagonal();
  desc.zeroMaskedRows = attention.getZeroMaskedRows();
  if (std::optional<plan::ViewAttr> mask = attention.getMask()) {
    desc.mask = mask->getElement();
    // Repeated along dimensions of size 1.
    auto stride = [&](size_t dim) {
      return mask->getShape()[dim] == 1 ? 0 : mask->getStrides()[dim];
    };
    desc.maskQuery = stride(2);
    desc.maskKey = stride(3);
  }
  return desc;
}

SoftmaxDesc cpu::getSoftmax(Operation *attention) {
  SoftmaxDesc desc;
  if (auto grad = dyn_cast<plan::AttentionGradOp>(attention)) {
    desc = describe(grad);
    desc.gradient = true;
    desc.logSumExp = grad.getLogSumExpGradient().has_value();
    desc.width = grad.getOutput().getShape()[3];
  } else {
    auto forward = cast<plan::AttentionOp>(attention);
    desc = describe(forward);
    desc.logSumExp = forward.getLogSumExp().has_value();
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << desc.type << ' ' << desc.mask << ' ' << desc.maskQuery << ' '
         << desc.maskKey << ' ' << llvm::bit_cast<uint64_t>(desc.scale) << ' '
         << desc.causal << desc.zeroMaskedRows << desc.logSumExp << ' '
         << desc.diagonal << ' ' << desc.width;
  desc.symbol = (kSoftmaxPrefix + (desc.gradient ? "grad_" : "") +
                 llvm::utohexstr(llvm::xxh3_64bits(text)))
                    .str();
  return desc;
}

std::string cpu::getKernelSymbol(plan::AttentionOp attention) {
  return getSoftmax(attention).symbol;
}

std::string cpu::getKernelSymbol(plan::AttentionGradOp grad) {
  return getSoftmax(grad).symbol;
}

namespace {
/// The addresses that a block of rows is at, in the order of the kernel's
/// arguments. Those that are computed in place are given twice.
struct Arguments {
  Value scores, mask;
  /// Of the gradient: that of the probabilities (gradient · valueᵀ).
  Value slopes;
  Value probabilities;
  /// Of the gradient: where that of the scores goes; and of each row the
  /// result and its gradient.
  Value scoreSlopes, outputs, gradients;
  Value logSumExps;
  Value logSumExpGradients; ///< null if there are none

  /// A SoftmaxRows: the first query, the columns and the strides of rows.
  Value firstQuery, columns, scoreStride, resultStride, outputStride;
};

/// One row of a block.
class SoftmaxRow {
public:
  SoftmaxRow(RowEmitter &e, const SoftmaxDesc &desc, const Arguments &at,
             Value row);
  void emitForward();
  void emitGradient();

private:
  Value emitScore(Value column);
  Value emitProbability(Value column, Value logSumExp);
  /// Σ gradient · output, less the gradient of the log-sum-exp.
  Value emitCommonSlope();
  /// Stores `value` in the columns that `causal` hides.
  void fillHidden(Value value);

  ImplicitLocOpBuilder &builder() { return e.builder(); }
  Value place(Value begin, Value column) {
    return arith::AddIOp::create(builder(), begin, column);
  }
  Value constant(double value) {
    return arith::ConstantOp::create(builder(),
                                     builder().getFloatAttr(compute, value));
  }
  /// A sum in any order.
  Value addUp(Value sum, Value term) {
    return arith::AddFOp::create(builder(), sum, term,
                                 arith::FastMathFlags::reassoc |
                                     arith::FastMathFlags::nsz);
  }
  Value isNothing(Value largest) {
    return arith::CmpFOp::create(builder(), arith::CmpFPredicate::OEQ, largest,
                                 constant(-kInfinity));
  }

  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

  RowEmitter &e;
  const SoftmaxDesc &desc;
  const Arguments &at;
  Type compute;
  Value row, begin, resultBegin, maskBegin, zero, visible;
};
} // namespace

SoftmaxRow::SoftmaxRow(RowEmitter &e, const SoftmaxDesc &desc,
                       const Arguments &at, Value row)
    : e(e), desc(desc), at(at), compute(e.getComputeType(desc.type)), row(row) {
  ImplicitLocOpBuilder &b = builder();
  zero = e.constantIndex(0);
  begin = arith::MulIOp::create(b, row, at.scoreStride);
  resultBegin = arith::MulIOp::create(b, row, at.resultStride);
  maskBegin = e.mul(row, desc.maskQuery);
  visible = at.columns;
  if (desc.causal) {
    Value query = arith::AddIOp::create(b, at.firstQuery, row);
    Value end =
        arith::AddIOp::create(b, query, e.constantIndex(desc.diagonal + 1));
    visible = arith::MinSIOp::create(b, arith::MaxSIOp::create(b, end, zero),
                                     at.columns);
  }
}

/// The scaled score, -infinity where the mask hides it.
Value SoftmaxRow::emitScore(Value column) {
  ImplicitLocOpBuilder &b = builder();
  Value x = e.load(at.scores, place(begin, column), compute);
  x = arith::MulFOp::create(b, x, emitFloat(b, x, desc.scale));
  if (!desc.mask)
    return x;
  Value m =
      e.load(at.mask, place(maskBegin, e.mul(column, desc.maskKey)), desc.mask);
  if (desc.mask.isInteger(1))
    return arith::SelectOp::create(b, m, x, emitFloat(b, x, -kInfinity));
  if (m.getType().getIntOrFloatBitWidth() < compute.getIntOrFloatBitWidth())
    m = arith::ExtFOp::create(b, compute, m);
  else if (m.getType() != compute)
    m = arith::TruncFOp::create(b, compute, m);
  return arith::AddFOp::create(b, x, m);
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

void SoftmaxRow::emitForward() {
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
  if (desc.logSumExp) {
    Value logSumExp = arith::AddFOp::create(b, maximum, emitLog(b, sum));
    logSumExp = arith::SelectOp::create(b, nothing, maximum, logSumExp);
    e.store(logSumExp, at.logSumExps, row, compute);
  }
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

/// Where what each argument is stands, as `Attention` and `AttentionGrad` of
/// the runtime have them.
static Arguments readArguments(RowEmitter &e, const SoftmaxDesc &desc,
                               ValueRange addresses) {
  // Results of the scores' own type are written over what they are of.
  bool inPlace = !desc.type.isBF16();
  unsigned next = 0;
  Arguments at;
  at.scores = addresses[next++];
  at.mask = addresses[next++];
  if (desc.gradient)
    at.slopes = addresses[next++];
  at.probabilities = addresses[next++];
  if (desc.gradient) {
    at.scoreSlopes = addresses[next++];
    at.outputs = addresses[next++];
    at.gradients = addresses[next++];
    at.logSumExps = addresses[next++];
    if (desc.logSumExp)
      at.logSumExpGradients = addresses[next];
    ++next;
  } else {
    if (desc.logSumExp)
      at.logSumExps = addresses[next];
    ++next;
  }
  if (inPlace) {
    at.probabilities = at.scores;
    at.scoreSlopes = at.slopes;
  }
  int64_t field = 0;
  for (Value *number : {&at.firstQuery, &at.columns, &at.scoreStride,
                        &at.resultStride, &at.outputStride})
    *number = e.load(addresses[next], e.constantIndex(field++),
                     e.builder().getI64Type());
  return at;
}

void cpu::emitSoftmax(ModuleOp module, const SoftmaxDesc &desc) {
  unsigned arguments = desc.gradient ? 10 : 5;
  emitFunction(
      module, desc.symbol, arguments, /*refuses=*/false,
      [&](RowEmitter &e, ValueRange addresses, Value first, Value end) {
        Arguments at = readArguments(e, desc, addresses);
        e.loop(first, end, {}, [&](Value index, ValueRange) {
          SoftmaxRow row(e, desc, at, index);
          if (desc.gradient)
            row.emitGradient();
          else
            row.emitForward();
          return Values();
        });
      });
}
