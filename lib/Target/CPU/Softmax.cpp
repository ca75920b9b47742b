// The softmax between attention's products, on a block of score rows: scale,
// mask, hide what is causal, exponentials, normalise. The runtime says where
// the block is (SoftmaxRows in runtime/Device/CPU/Gemm/Attention.h).

#include "EmitKernel.h"

#include "ScalarMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace accel;
using namespace accel::cpu;
using Values = RowEmitter::Values;

SoftmaxDesc cpu::getSoftmax(plan::AttentionOp attention) {
  SoftmaxDesc desc;
  desc.queries = attention.getQuery().getShape()[2];
  desc.keys = attention.getKey().getShape()[2];
  desc.type = attention.getOutput().getElement();
  desc.scale = attention.getScale().convertToDouble();
  desc.causal = attention.getCausal();
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
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << desc.queries << ' ' << desc.keys << ' ' << desc.type << ' '
         << desc.mask << ' ' << desc.maskQuery << ' ' << desc.maskKey << ' '
         << llvm::bit_cast<uint64_t>(desc.scale) << desc.causal
         << desc.zeroMaskedRows;
  desc.symbol = "softmax_" + llvm::utohexstr(llvm::xxh3_64bits(text));
  return desc;
}

std::string cpu::getKernelSymbol(plan::AttentionOp attention) {
  return getSoftmax(attention).symbol;
}

namespace {
/// The values of a row that its loops share.
struct SoftmaxRow {
  RowEmitter &e;
  const SoftmaxDesc &desc;
  Value scores, mask, results;
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
  Value sum =
      e.loop(zero, visible, constant(0),
             [&](Value column, ValueRange carried) -> Values {
               ImplicitLocOpBuilder &inner = e.builder();
               Value at = place(begin, column);
               Value x = e.load(scores, at, compute);
               Value y = emitExp(inner, arith::SubFOp::create(inner, x, shift));
               e.store(y, scores, at, compute);
               return {arith::AddFOp::create(inner, carried[0], y,
                                             arith::FastMathFlags::reassoc |
                                                 arith::FastMathFlags::nsz)};
             })[0];
  Value factor = arith::DivFOp::create(b, constant(1), sum);
  Value hidden = constant(0);
  if (desc.zeroMaskedRows)
    factor = arith::SelectOp::create(b, nothing, constant(0), factor);
  else
    hidden = arith::SelectOp::create(
        b, nothing, constant(std::numeric_limits<double>::quiet_NaN()), hidden);
  e.loop(zero, visible, {}, [&](Value column, ValueRange) {
    Value y = e.load(scores, place(begin, column), compute);
    y = arith::MulFOp::create(e.builder(), y, factor);
    e.store(y, results, place(resultBegin, column), desc.type);
    return Values();
  });
  e.loop(visible, columns, {}, [&](Value column, ValueRange) {
    e.store(hidden, results, place(resultBegin, column), desc.type);
    return Values();
  });
}

void cpu::emitSoftmax(ModuleOp module, const SoftmaxDesc &desc) {
  emitFunction(
      module, desc.symbol, 4,
      [&](RowEmitter &e, ValueRange addresses, Value first, Value last) {
        ImplicitLocOpBuilder &b = e.builder();
        Values block;
        for (int64_t field = 0; field < 4; ++field)
          block.push_back(
              e.load(addresses[3], e.constantIndex(field), b.getI64Type()));
        Type compute = e.getComputeType(desc.type);
        // Probabilities of the scores' own type are written over them.
        bool inPlace = !desc.type.isBF16();
        SoftmaxRow row{e,
                       desc,
                       addresses[0],
                       addresses[1],
                       addresses[inPlace ? 0 : 2],
                       compute};
        e.loop(first, last, {}, [&](Value index, ValueRange) {
          row.emit(index, block);
          return Values();
        });
      });
}
