// Recognition of layer normalisation, from the normalised value outwards: first
// (x - mean) / root, then the scale and the bias behind it.

#include "FoldConstants.h"
#include "Passes.h"
#include "dialects/NN/TensorTypes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

using namespace mlir;

namespace accel::transforms {
#define GEN_PASS_DEF_RECOGNIZELAYERNORMPASS
#include "lib/Transforms/Passes.h.inc"

namespace {

/// The value that `wide` repeats along the dimensions from `dim` on, of shape
/// [leading…, 1…]; null if it is no such broadcast.
Value rowValue(Value wide, int64_t dim) {
  auto broadcast = wide.getDefiningOp<nn::BroadcastOp>();
  if (!broadcast)
    return nullptr;
  Value row = broadcast.getInput();
  SmallVector<int64_t> expected(shapeOf(wide).take_front(dim));
  expected.append(shapeOf(wide).size() - dim, 1);
  return shapeOf(row) == ArrayRef(expected) ? row : Value();
}

/// x if `mean` (of shape [leading…, 1…]) is its mean over the dimensions from
/// `dim` on, whatever they are: `dim` is set.
Value meanOf(Value mean, int64_t &dim) {
  nn::ReduceOp reduce;
  double factor = 1;
  for (Value value = mean; !reduce;) {
    Operation *op = value.getDefiningOp();
    if (auto mul = dyn_cast_or_null<nn::MulOp>(op)) {
      bool onLeft = getSplatValue(mul.getLhs()).has_value();
      std::optional<double> constant =
          getSplatValue(onLeft ? mul.getLhs() : mul.getRhs());
      if (!constant)
        return nullptr;
      factor *= *constant;
      value = onLeft ? mul.getRhs() : mul.getLhs();
    } else if (auto reshape = dyn_cast_or_null<nn::ReshapeOp>(op)) {
      value = reshape.getInput();
    } else if (!(reduce = dyn_cast_or_null<nn::ReduceOp>(op))) {
      return nullptr;
    }
  }
  Value x = reduce.getInput();
  ArrayRef<int64_t> dims = reduce.getDims(), shape = shapeOf(x);
  int64_t rank = shape.size();
  if (reduce.getKind() != nn::ReductionKind::sum || dims.empty() ||
      dims.back() != rank - 1 ||
      dims.front() != rank - static_cast<int64_t>(dims.size()))
    return nullptr;
  dim = dims.front();
  double count = 1;
  for (int64_t size : shape.drop_front(dim))
    count *= size;
  SmallVector<int64_t> expected(shape.take_front(dim));
  expected.append(dims.size(), 1);
  // 1 / count is rounded to the element type: 2^-8 covers bf16.
  bool fits = shapeOf(mean) == ArrayRef(expected) &&
              std::abs(factor * count - 1) < 1.0 / 256;
  return fits ? x : Value();
}

/// The pieces of a recognised (x - mean) / sqrt(variance + epsilon).
struct Normalized {
  Value x;
  int64_t dim;
  double epsilon;
};

/// The centred value that is multiplied by one over a root, and the root.
std::pair<Value, Value> matchQuotient(Operation *op) {
  auto rootOf = [](Value row) -> Value {
    if (auto rsqrt = row.getDefiningOp<nn::RsqrtOp>())
      return rsqrt.getInput();
    if (auto reciprocal = row.getDefiningOp<nn::ReciprocalOp>())
      if (auto sqrt = reciprocal.getInput().getDefiningOp<nn::SqrtOp>())
        return sqrt.getInput();
    if (auto quotient = row.getDefiningOp<nn::DivOp>())
      if (getSplatValue(quotient.getLhs()) == 1.0)
        if (auto sqrt = quotient.getRhs().getDefiningOp<nn::SqrtOp>())
          return sqrt.getInput();
    return nullptr;
  };
  // The factor may have been made wide before or after the root is taken.
  auto narrow = [](Value wide) {
    auto broadcast = wide.getDefiningOp<nn::BroadcastOp>();
    return broadcast ? broadcast.getInput() : wide;
  };
  if (auto div = dyn_cast<nn::DivOp>(op)) {
    if (auto sqrt = narrow(div.getRhs()).getDefiningOp<nn::SqrtOp>())
      return {div.getLhs(), sqrt.getInput()};
    return {};
  }
  auto mul = dyn_cast<nn::MulOp>(op);
  if (!mul)
    return {};
  if (Value root = rootOf(narrow(mul.getRhs())))
    return {mul.getLhs(), root};
  if (Value root = rootOf(narrow(mul.getLhs())))
    return {mul.getRhs(), root};
  return {};
}

std::optional<Normalized> matchNormalized(Operation *op) {
  auto [centred, root] = matchQuotient(op);
  auto shifted = root ? root.getDefiningOp<nn::AddOp>() : nn::AddOp();
  auto difference = centred ? centred.getDefiningOp<nn::SubOp>() : nn::SubOp();
  if (!shifted || !difference)
    return std::nullopt;
  std::optional<double> epsilon = getSplatValue(shifted.getRhs());
  Value variance = shifted.getLhs();
  if (!epsilon) {
    epsilon = getSplatValue(shifted.getLhs());
    variance = shifted.getRhs();
  }
  int64_t dim = 0, meanDim = 0;
  Value square = epsilon ? meanOf(variance, dim) : Value();
  if (!square)
    return std::nullopt;
  bool squares = false;
  if (auto mul = square.getDefiningOp<nn::MulOp>())
    squares = mul.getLhs() == centred && mul.getRhs() == centred;
  else if (auto pow = square.getDefiningOp<nn::PowOp>())
    squares = pow.getLhs() == centred && getSplatValue(pow.getRhs()) == 2.0;
  if (!squares)
    return std::nullopt;
  Value mean = rowValue(difference.getRhs(), dim);
  Value x = difference.getLhs();
  if (!mean || meanOf(mean, meanDim) != x || meanDim != dim)
    return std::nullopt;
  return Normalized{x, dim, *epsilon};
}

/// The value of shape `normal` that the other operand of `op` repeats, if `op`
/// is an Op of `value`.
template <typename Op>
Value otherOperand(Operation *op, Value value, ArrayRef<int64_t> normal) {
  auto binary = dyn_cast<Op>(op);
  if (!binary)
    return nullptr;
  Value other = binary.getLhs() == value ? binary.getRhs() : binary.getLhs();
  if (other == value)
    return nullptr;
  if (auto broadcast = other.getDefiningOp<nn::BroadcastOp>())
    other = broadcast.getInput();
  // A constant that is the same everywhere was made wide at import.
  if (getSplatValue(other) && shapeOf(other) != normal)
    return nullptr;
  return shapeOf(other) == normal ? other : Value();
}

template <typename Op> struct RecognizeLayerNorm : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    std::optional<Normalized> normalized = matchNormalized(op);
    if (!normalized)
      return rewriter.notifyMatchFailure(op, "not a normalised value");
    ArrayRef<int64_t> normal =
        shapeOf(normalized->x).drop_front(normalized->dim);
    if (!op->hasOneUse())
      return rewriter.notifyMatchFailure(op, "used without a scale");
    Operation *scaled = *op->user_begin();
    Value scale = otherOperand<nn::MulOp>(scaled, op.getResult(), normal);
    if (!scale)
      return rewriter.notifyMatchFailure(op, "no scale behind it");
    Operation *last = scaled;
    Value bias;
    if (scaled->hasOneUse()) {
      Operation *user = *scaled->user_begin();
      bias = otherOperand<nn::AddOp>(user, scaled->getResult(0), normal);
      if (bias)
        last = user;
    }
    rewriter.setInsertionPoint(last);
    rewriter.replaceOpWithNewOp<nn::LayerNormOp>(
        last, last->getResult(0).getType(), normalized->x, scale, bias,
        rewriter.getI64IntegerAttr(normalized->dim),
        rewriter.getF64FloatAttr(normalized->epsilon));
    return success();
  }
};

struct RecognizeLayerNormPass
    : impl::RecognizeLayerNormPassBase<RecognizeLayerNormPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RecognizeLayerNorm<nn::DivOp>, RecognizeLayerNorm<nn::MulOp>>(
        &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace accel::transforms
