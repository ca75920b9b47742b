// The softmax between attention's products, on a block of score rows: scale,
// mask, hide what is causal, exponentials, normalise; and, for the gradient,
// which has the rows' log-sum-exps, probabilities and their slopes in one pass.
// The runtime says where the block is (SoftmaxRows in
// runtime/Device/CPU/Gemm/Attention.h).

#include "ScalarMath.h"
#include "SoftmaxRow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace accel;
using namespace accel::cpu;
using Values = RowEmitter::Values;

/// What both commands say alike.
template <class AttentionLike>
static SoftmaxDesc describeSoftmax(AttentionLike attention) {
  SoftmaxDesc desc;
  desc.type = attention.getQuery().getElement();
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
    desc.levels = mask->getShape()[3] > attention.getKey().getShape()[2];
  }
  return desc;
}

SoftmaxDesc cpu::getSoftmax(Operation *attention) {
  SoftmaxDesc desc;
  if (auto grad = dyn_cast<plan::AttentionGradOp>(attention)) {
    desc = describeSoftmax(grad);
    desc.gradient = true;
    desc.logSumExp = grad.getLogSumExpGradient().has_value();
    desc.width = grad.getOutput().getShape()[3];
  } else {
    auto forward = cast<plan::AttentionOp>(attention);
    desc = describeSoftmax(forward);
    desc.logSumExp = forward.getLogSumExp().has_value();
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << desc.type << ' ' << desc.mask << ' ' << desc.maskQuery << ' '
         << desc.maskKey << ' ' << llvm::bit_cast<uint64_t>(desc.scale) << ' '
         << desc.causal << desc.zeroMaskedRows << desc.logSumExp << ' '
         << desc.width << (desc.levels ? " levels" : "");
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

/// Where what each argument is stands, as `Attention` and `AttentionGrad` of
/// the runtime have them.
static SoftmaxArguments readArguments(RowEmitter &e, const SoftmaxDesc &desc,
                                      ValueRange addresses) {
  // Results of the scores' own type are written over what they are of.
  bool inPlace = desc.type == e.getComputeType(desc.type);
  unsigned next = 0;
  SoftmaxArguments at;
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
  int64_t field = 0;
  for (Value *number : {&at.visible, &at.columns, &at.scoreStride,
                        &at.resultStride, &at.outputStride})
    *number = e.load(addresses[next], e.constantIndex(field++),
                     e.builder().getI64Type());
  if (inPlace) {
    at.probabilities = at.scores;
    at.scoreSlopes = at.slopes;
    // One stride, so that LLVM sees each element stored where it was loaded:
    // it computes them one by one otherwise.
    at.resultStride = at.scoreStride;
  }
  return at;
}

/// Softmax of all rows, and their log-sum-exps. Logarithms are taken of many
/// rows at a time: one by one they would take a tenth of the whole.
static void emitRowsWithSums(RowEmitter &e, const SoftmaxDesc &desc,
                             const SoftmaxArguments &at, Value first,
                             Value end) {
  constexpr int64_t kRows = 64;
  ImplicitLocOpBuilder &b = e.builder();
  Type compute = e.getComputeType(desc.type);
  Value largest = e.scratch(compute, kRows), sums = e.scratch(compute, kRows);
  Value count = arith::SubIOp::create(b, end, first);
  Value chunks = e.div(e.add(count, e.constantIndex(kRows - 1)), kRows);
  e.loop(e.constantIndex(0), chunks, {}, [&](Value chunk, ValueRange) {
    Value begin = e.add(first, e.mul(chunk, kRows));
    Value rows =
        arith::MinSIOp::create(e.builder(), e.constantIndex(kRows),
                               arith::SubIOp::create(e.builder(), end, begin));
    e.loop(e.constantIndex(0), rows, {}, [&](Value index, ValueRange) {
      auto [maximum, sum] =
          SoftmaxRow(e, desc, at, e.add(begin, index)).emitForward();
      e.storeScratch(maximum, largest, index);
      e.storeScratch(sum, sums, index);
      return Values();
    });
    e.loop(e.constantIndex(0), rows, {}, [&](Value index, ValueRange) {
      ImplicitLocOpBuilder &inner = e.builder();
      Value maximum = e.loadScratch(largest, index, compute);
      Value logarithm = emitLog(inner, e.loadScratch(sums, index, compute));
      Value nothing = arith::CmpFOp::create(
          inner, arith::CmpFPredicate::OEQ, maximum,
          emitFloat(inner, maximum, -std::numeric_limits<double>::infinity()));
      Value sum = arith::AddFOp::create(inner, maximum, logarithm);
      e.store(arith::SelectOp::create(inner, nothing, maximum, sum),
              at.logSumExps, e.add(begin, index), compute);
      return Values();
    });
    return Values();
  });
}

void cpu::emitSoftmax(ModuleOp module, const SoftmaxDesc &desc) {
  unsigned arguments = desc.gradient ? 10 : 5;
  emitFunction(
      module, desc.symbol, arguments, /*refuses=*/false,
      [&](RowEmitter &e, ValueRange addresses, Value first, Value end) {
        SoftmaxArguments at = readArguments(e, desc, addresses);
        if (!desc.gradient && desc.logSumExp) {
          emitRowsWithSums(e, desc, at, first, end);
          return;
        }
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
