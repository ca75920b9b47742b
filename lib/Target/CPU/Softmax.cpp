// The softmax between attention's products, on a block of score rows: scale,
// mask, hide what is causal, exponentials, normalise; and, for the gradient,
// what a gradient of the probabilities makes of it. The runtime says where the
// block is (SoftmaxRows in runtime/Device/CPU/Gemm/Attention.h).

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
static SoftmaxDesc describe(AttentionLike attention, bool gradient) {
  SoftmaxDesc desc;
  desc.queries = attention.getQuery().getShape()[2];
  desc.keys = attention.getKey().getShape()[2];
  desc.type = attention.getQuery().getElement();
  desc.scale = attention.getScale().convertToDouble();
  desc.causal = attention.getCausal();
  desc.zeroMaskedRows = attention.getZeroMaskedRows();
  desc.gradient = gradient;
  if (std::optional<plan::ViewAttr> mask = attention.getMask()) {
    desc.mask = mask->getElement();
    // Repeated along dimensions of size 1.
    auto stride = [&](size_t dim) {
      return mask->getShape()[dim] == 1 ? 0 : mask->getStrides()[dim];
    };
    desc.maskQuery = stride(2);
    desc.maskKey = stride(3);
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << desc.queries << ' ' << desc.keys << ' ' << desc.type << ' '
         << desc.mask << ' ' << desc.maskQuery << ' ' << desc.maskKey << ' '
         << llvm::bit_cast<uint64_t>(desc.scale) << desc.causal
         << desc.zeroMaskedRows;
  desc.symbol = (kSoftmaxPrefix + (gradient ? "grad_" : "") +
                 llvm::utohexstr(llvm::xxh3_64bits(text)))
                    .str();
  return desc;
}

SoftmaxDesc cpu::getSoftmax(Operation *attention) {
  if (auto grad = dyn_cast<plan::AttentionGradOp>(attention))
    return describe(grad, /*gradient=*/true);
  return describe(cast<plan::AttentionOp>(attention), /*gradient=*/false);
}

std::string cpu::getKernelSymbol(plan::AttentionOp attention) {
  return getSoftmax(attention).symbol;
}

std::string cpu::getKernelSymbol(plan::AttentionGradOp grad) {
  return getSoftmax(grad).symbol;
}

namespace {
/// The values of a row that its loops share.
struct SoftmaxRow {
  RowEmitter &e;
  const SoftmaxDesc &desc;
  Value scores, mask, results;
  /// Of the gradient: that of the probabilities, and where that of the scores
  /// goes.
  Value slopes, scoreSlopes;
  Type compute;

  void emit(Value row, ValueRange block);
  Value emitScore(Value at, Value maskAt);
};
} // namespace

/// The scaled score, -infinity where the mask hides it.
Value SoftmaxRow::emitScore(Value at, Value maskAt) {
  ImplicitLocOpBuilder &b = e.builder();
  Value x = e.load(scores, at, compute);
  x = arith::MulFOp::create(b, x, emitFloat(b, x, desc.scale));
  if (!desc.mask)
    return x;
  Value m = e.load(mask, maskAt, desc.mask);
  if (desc.mask.isInteger(1))
    return arith::SelectOp::create(
        b, m, x, emitFloat(b, x, -std::numeric_limits<double>::infinity()));
  if (m.getType().getIntOrFloatBitWidth() < compute.getIntOrFloatBitWidth())
    m = arith::ExtFOp::create(b, compute, m);
  else if (m.getType() != compute)
    m = arith::TruncFOp::create(b, compute, m);
  return arith::AddFOp::create(b, x, m);
}

void SoftmaxRow::emit(Value row, ValueRange block) {
  ImplicitLocOpBuilder &b = e.builder();
  const double infinity = std::numeric_limits<double>::infinity();
  Value zero = e.constantIndex(0);
  Value begin = arith::MulIOp::create(b, row, block[2]);
  Value resultBegin = arith::MulIOp::create(b, row, block[3]);
  Value maskBegin = e.mul(row, desc.maskQuery);
  Value columns = block[1], visible = columns;
  if (desc.causal) {
    Value query = arith::AddIOp::create(b, block[0], row);
    Value end = arith::AddIOp::create(
        b, query, e.constantIndex(1 + desc.keys - desc.queries));
    visible = arith::MinSIOp::create(b, arith::MaxSIOp::create(b, end, zero),
                                     columns);
  }
  auto place = [&](Value start, Value column) -> Value {
    return arith::AddIOp::create(e.builder(), start, column);
  };
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(e.builder(),
                                     b.getFloatAttr(compute, value));
  };

  Value maximum =
      e.loop(zero, visible, constant(-infinity),
             [&](Value column, ValueRange carried) -> Values {
               Value at = place(begin, column);
               Value maskAt = place(maskBegin, e.mul(column, desc.maskKey));
               Value x = emitScore(at, maskAt);
               e.store(x, scores, at, compute);
               return {arith::MaximumFOp::create(e.builder(), carried[0], x,
                                                 arith::FastMathFlags::nsz)};
             })[0];
  // Nothing is let through: all exponentials are to be 0 rather than NaN.
  Value nothing = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, maximum,
                                        constant(-infinity));
  Value shift = maximum;
  if (desc.zeroMaskedRows)
    shift = arith::SelectOp::create(b, nothing, constant(0), maximum);
  // The exponentials' sum, and that of their products with the slopes.
  Values sums = {constant(0)};
  if (desc.gradient)
    sums.push_back(sums.front());
  auto addUp = [](ImplicitLocOpBuilder &inner, Value sum, Value term) {
    return arith::AddFOp::create(inner, sum, term,
                                 arith::FastMathFlags::reassoc |
                                     arith::FastMathFlags::nsz);
  };
  sums = e.loop(
      zero, visible, sums, [&](Value column, ValueRange carried) -> Values {
        ImplicitLocOpBuilder &inner = e.builder();
        Value at = place(begin, column);
        Value x = e.load(scores, at, compute);
        Value y = emitExp(inner, arith::SubFOp::create(inner, x, shift),
                          /*nonPositive=*/true);
        e.store(y, scores, at, compute);
        Values next = {addUp(inner, carried[0], y)};
        if (desc.gradient)
          next.push_back(addUp(
              inner, carried[1],
              arith::MulFOp::create(inner, y, e.load(slopes, at, compute))));
        return next;
      });
  Value factor = arith::DivFOp::create(b, constant(1), sums[0]);
  Value hidden = constant(0);
  if (desc.zeroMaskedRows)
    factor = arith::SelectOp::create(b, nothing, constant(0), factor);
  else
    hidden = arith::SelectOp::create(
        b, nothing, constant(std::numeric_limits<double>::quiet_NaN()), hidden);
  Value mean;
  if (desc.gradient)
    mean = arith::MulFOp::create(b, sums[1], factor);
  e.loop(zero, visible, {}, [&](Value column, ValueRange) {
    ImplicitLocOpBuilder &inner = e.builder();
    Value at = place(begin, column), resultAt = place(resultBegin, column);
    Value y = e.load(scores, at, compute);
    y = arith::MulFOp::create(inner, y, factor);
    e.store(y, results, resultAt, desc.type);
    if (desc.gradient) {
      Value slope = e.load(slopes, at, compute);
      slope = arith::SubFOp::create(inner, slope, mean);
      slope = arith::MulFOp::create(inner, slope, y);
      slope = arith::MulFOp::create(inner, slope,
                                    emitFloat(inner, slope, desc.scale));
      e.store(slope, scoreSlopes, resultAt, desc.type);
    }
    return Values();
  });
  e.loop(visible, columns, {}, [&](Value column, ValueRange) {
    Value resultAt = place(resultBegin, column);
    e.store(hidden, results, resultAt, desc.type);
    if (desc.gradient)
      e.store(hidden, scoreSlopes, resultAt, desc.type);
    return Values();
  });
}

void cpu::emitSoftmax(ModuleOp module, const SoftmaxDesc &desc) {
  // Scores, mask, (slopes), probabilities, (scores' gradient), the block.
  unsigned results = desc.gradient ? 3 : 2,
           last = results + (desc.gradient + 1);
  emitFunction(
      module, desc.symbol, last + 1, /*refuses=*/false,
      [&](RowEmitter &e, ValueRange addresses, Value first, Value end) {
        ImplicitLocOpBuilder &b = e.builder();
        Values block;
        for (int64_t field = 0; field < 4; ++field)
          block.push_back(
              e.load(addresses[last], e.constantIndex(field), b.getI64Type()));
        Type compute = e.getComputeType(desc.type);
        // Results of the scores' own type are written over what they are of.
        bool inPlace = !desc.type.isBF16();
        SoftmaxRow row{e,
                       desc,
                       addresses[0],
                       addresses[1],
                       addresses[inPlace ? 0 : results],
                       Value(),
                       Value(),
                       compute};
        if (desc.gradient) {
          row.slopes = addresses[2];
          row.scoreSlopes = addresses[inPlace ? 2 : results + 1];
        }
        e.loop(first, end, {}, [&](Value index, ValueRange) {
          row.emit(index, block);
          return Values();
        });
      });
}
