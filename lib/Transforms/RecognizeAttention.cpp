// Recognition of attention: from the product of weights and values back through
// softmax, masks and scale to query and key.

#include "AttentionMask.h"
#include "FoldConstants.h"
#include "Passes.h"
#include "dialects/NN/TensorTypes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace accel::transforms {
#define GEN_PASS_DEF_RECOGNIZEATTENTIONPASS
#include "lib/Transforms/Passes.h.inc"

namespace {

/// Whether a reshape leaves the last two dimensions alone: it merges or splits
/// batch and heads.
bool keepsMatrices(nn::ReshapeOp reshape) {
  ArrayRef<int64_t> from = shapeOf(reshape.getInput());
  ArrayRef<int64_t> to = reshape.getType().getShape();
  return from.size() >= 2 && to.size() >= 2 &&
         from.take_back(2) == to.take_back(2);
}

/// Multiplies `scale` by the constant that `op` scales a value by; returns that
/// value, or null if `op` does not scale.
Value peelScale(Operation *op, double &scale) {
  if (auto mul = dyn_cast_or_null<nn::MulOp>(op)) {
    if (auto constant = getSplatValue(mul.getRhs())) {
      scale *= *constant;
      return mul.getLhs();
    }
    if (auto constant = getSplatValue(mul.getLhs())) {
      scale *= *constant;
      return mul.getRhs();
    }
  }
  if (auto div = dyn_cast_or_null<nn::DivOp>(op))
    if (auto constant = getSplatValue(div.getRhs());
        constant && *constant != 0) {
      scale /= *constant;
      return div.getLhs();
    }
  return nullptr;
}

Value peelScales(Value value, double &scale) {
  while (Value inner = peelScale(value.getDefiningOp(), scale))
    value = inner;
  return value;
}

/// Swaps the last two dimensions.
Value transposeLast(PatternRewriter &rewriter, Location loc, Value value) {
  SmallVector<int64_t> permutation =
      llvm::to_vector(llvm::seq<int64_t>(shapeOf(value).size()));
  std::swap(permutation.back(), permutation[permutation.size() - 2]);
  return nn::TransposeOp::create(rewriter, loc, value, permutation);
}

/// softmax, or `isnan(softmax) ? 0 : softmax`, once or twice.
nn::SoftmaxOp matchSoftmax(Value weights, bool &zeroMaskedRows) {
  while (auto select = weights.getDefiningOp<nn::SelectOp>()) {
    auto isNan = select.getCondition().getDefiningOp<nn::IsNanOp>();
    if (!isNan || isNan.getInput() != select.getOnFalse() ||
        getSplatValue(select.getOnTrue()) != 0.0)
      break;
    zeroMaskedRows = true;
    weights = select.getOnFalse();
  }
  auto softmax = weights.getDefiningOp<nn::SoftmaxOp>();
  if (!softmax || softmax.getLog() ||
      static_cast<size_t>(softmax.getDim()) + 1 !=
          shapeOf(softmax.getResult()).size())
    return nullptr;
  return softmax;
}

/// Whether a chain of scales, reshapes and masks, at most `depth` masks deep,
/// leads from `value` to a matrix product: then it is the scores rather than a
/// mask.
bool leadsToProduct(Value value, unsigned depth) {
  for (double ignored = 1;;) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<nn::MatmulOp>(op))
      return true;
    if (auto reshape = dyn_cast_or_null<nn::ReshapeOp>(op)) {
      value = reshape.getInput();
    } else if (Value inner = peelScale(op, ignored)) {
      value = inner;
    } else {
      auto deeper = [&](Value next) {
        return depth > 0 && leadsToProduct(next, depth - 1);
      };
      return succeeded(MaskStep::match(op, deeper));
    }
  }
}

bool isScores(Value value) { return leadsToProduct(value, 4); }

struct RecognizeAttention : OpRewritePattern<nn::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::MatmulOp product,
                                PatternRewriter &rewriter) const override {
    if (product.getTransposeLhs())
      return rewriter.notifyMatchFailure(product, "weights are transposed");
    Value weights = product.getLhs();
    // Batch and heads may be merged between softmax and the product.
    while (auto reshape = weights.getDefiningOp<nn::ReshapeOp>()) {
      if (!keepsMatrices(reshape))
        return rewriter.notifyMatchFailure(product, "weights are reshaped");
      weights = reshape.getInput();
    }
    bool zeroMaskedRows = false;
    nn::SoftmaxOp softmax = matchSoftmax(weights, zeroMaskedRows);
    if (!softmax)
      return rewriter.notifyMatchFailure(product, "no softmax of rows");

    // Back from the softmax: masks first, then the scale, then the product.
    SmallVector<MaskStep> masks;
    SmallVector<int64_t> heads; // the batch dimensions, if they are two
    double scale = 1;
    Value scores = softmax.getInput();
    nn::MatmulOp raw;
    while (!raw) {
      ArrayRef<int64_t> shape = shapeOf(scores);
      if (shape.size() != 3 && shape.size() != 4)
        return rewriter.notifyMatchFailure(product, "not of rank 3 or 4");
      if (shape.size() == 4 && !heads.empty() &&
          shape.take_front(2) != ArrayRef(heads))
        return rewriter.notifyMatchFailure(product, "two ways to split heads");
      if (shape.size() == 4)
        heads.assign(shape.begin(), shape.begin() + 2);
      Operation *op = scores.getDefiningOp();
      if ((raw = dyn_cast_or_null<nn::MatmulOp>(op)))
        break;
      if (auto reshape = dyn_cast_or_null<nn::ReshapeOp>(op)) {
        if (!keepsMatrices(reshape))
          return rewriter.notifyMatchFailure(product, "scores are reshaped");
        scores = reshape.getInput();
      } else if (Value scaled = peelScale(op, scale)) {
        scores = scaled;
      } else if (scale == 1) {
        FailureOr<MaskStep> mask = MaskStep::match(op, isScores);
        if (failed(mask))
          return rewriter.notifyMatchFailure(product, "no scores behind it");
        masks.push_back(*mask);
        scores = mask->scores;
      } else {
        return rewriter.notifyMatchFailure(product, "a mask before the scale");
      }
    }
    if (raw.getTransposeLhs())
      return rewriter.notifyMatchFailure(product, "query is transposed");

    Location loc = rewriter.getFusedLoc(
        {raw.getLoc(), softmax.getLoc(), product.getLoc()});
    Value query = peelScales(raw.getLhs(), scale);
    Value key = peelScales(raw.getRhs(), scale);
    Value value = product.getRhs();
    size_t rank = shapeOf(query).size();
    if ((rank != 3 && rank != 4) || shapeOf(key).size() != rank ||
        shapeOf(value).size() != shapeOf(product.getResult()).size())
      return rewriter.notifyMatchFailure(product, "not of rank 3 or 4");
    if (heads.empty())
      heads = {shapeOf(query)[0], 1};
    if (!raw.getTransposeRhs())
      key = transposeLast(rewriter, loc, key);
    if (product.getTransposeRhs())
      value = transposeLast(rewriter, loc, value);
    auto split = [&](Value matrix) -> Value {
      SmallVector<int64_t> shape(heads);
      llvm::append_range(shape, shapeOf(matrix).take_back(2));
      if (shapeOf(matrix) == ArrayRef(shape))
        return matrix;
      return nn::ReshapeOp::create(
          rewriter, loc,
          RankedTensorType::get(shape, getElementTypeOrSelf(matrix.getType())),
          matrix);
    };
    query = split(query);
    key = split(key);
    value = split(value);

    AttentionMask mask =
        buildMask(rewriter, loc, masks,
                  {heads[0], heads[1], shapeOf(query)[2], shapeOf(key)[2]},
                  getElementTypeOrSelf(query.getType()));
    Value result =
        nn::AttentionOp::create(
            rewriter, loc, query, key, value, mask.mask, llvm::APFloat(scale),
            mask.causal, zeroMaskedRows && !mask.rowsAreOpen, mask.rowOffset,
            /*column_offset=*/0, /*row_steps=*/nullptr,
            /*column_steps=*/nullptr, /*turn=*/0, /*stride=*/1)
            .getResult();
    if (result.getType() != product.getType())
      result = nn::ReshapeOp::create(rewriter, loc, product.getType(), result);
    rewriter.replaceOp(product, result);
    return success();
  }
};

/// Known masks of attention that is whole already, as opset 23 writes it.
struct SimplifyMask : OpRewritePattern<nn::AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::AttentionOp op,
                                PatternRewriter &rewriter) const override {
    Value stored = op.getMask();
    if (auto broadcast =
            stored ? stored.getDefiningOp<nn::BroadcastOp>() : nullptr)
      stored = broadcast.getInput();
    DenseElementsAttr known = getConstantValue(stored);
    if (!known || known.getType().getRank() != 4 || op.getCausal())
      return rewriter.notifyMatchFailure(op, "no known mask alone");
    ArrayRef<int64_t> query = shapeOf(op.getQuery());
    FailureOr<KnownMask> mask = readKnownMask(
        known, {query[0], query[1], query[2], shapeOf(op.getKey())[2]});
    if (failed(mask) ||
        (mask->mask && mask->mask.getType() == op.getMask().getType()))
      return rewriter.notifyMatchFailure(op, "the mask is simple already");
    Value simple;
    if (mask->mask)
      simple = nn::ConstantOp::create(rewriter, op.getLoc(), mask->mask);
    rewriter.modifyOpInPlace(op, [&] {
      op.getMaskMutable().clear();
      if (simple)
        op.getMaskMutable().assign(simple);
      op.setCausal(mask->causal);
      op.setRowOffset(mask->rowOffset);
      op.setZeroMaskedRows(false); // some key is open in every row
    });
    return success();
  }
};

struct RecognizeAttentionPass
    : impl::RecognizeAttentionPassBase<RecognizeAttentionPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RecognizeAttention, SimplifyMask>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace accel::transforms
