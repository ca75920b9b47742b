// A lookup of one place that is known is a slice: what splits and fuses slices
// then sees it, and no index is computed or checked when the program runs.

#include "dialects/NN/NN.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace accel::nn;

/// The indices, if they are constants that name one place; a negative one
/// counts from the end of its dimension, of those that begin with `dim`. None
/// if it is in no place of the table: that is to stop the run.
static std::optional<SmallVector<int64_t>>
findPlace(Value indices, RankedTensorType table, unsigned dim, unsigned depth) {
  DenseIntElementsAttr constant;
  if (!matchPattern(indices, m_Constant(&constant)) ||
      constant.getNumElements() != depth)
    return std::nullopt;
  SmallVector<int64_t> place;
  for (const APInt &value : constant.getValues<APInt>()) {
    int64_t size = table.getDimSize(dim + place.size());
    int64_t index = value.getSExtValue();
    if (index < -size || index >= size)
      return std::nullopt;
    place.push_back(index < 0 ? index + size : index);
  }
  return place;
}

/// Puts the slice of `table` at `place`, along dimensions from `dim`, in place
/// of `op`.
static void replaceBySlice(Operation *op, Value table, unsigned dim,
                           ArrayRef<int64_t> place, PatternRewriter &rewriter) {
  auto type = cast<RankedTensorType>(table.getType());
  SmallVector<int64_t> starts(type.getRank(), 0), sizes(type.getShape()),
      steps(type.getRank(), 1);
  for (auto [number, index] : llvm::enumerate(place)) {
    starts[dim + number] = index;
    sizes[dim + number] = 1;
  }
  Value slice =
      SliceOp::create(rewriter, op->getLoc(), table, starts, sizes, steps);
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op->getResult(0).getType(), slice);
}

static bool areTypesPlain(Operation *op) {
  return llvm::none_of(
      llvm::concat<Type>(SmallVector<Type>(op->getOperandTypes()),
                         SmallVector<Type>(op->getResultTypes())),
      [](Type type) { return cast<RankedTensorType>(type).getEncoding(); });
}

namespace {
/// gather x, 2 dim 1 -> slice x[:, 2]
struct SliceOfGather : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GatherOp op,
                                PatternRewriter &rewriter) const override {
    auto place =
        findPlace(op.getIndices(), op.getTable().getType(), op.getDim(), 1);
    if (!place || !areTypesPlain(op))
      return rewriter.notifyMatchFailure(op, "no one place that is known");
    // What it picks may not be trained, or not be picked.
    if (op.getPaddingIndex() || op.getNonNegative())
      return rewriter.notifyMatchFailure(op, "an embedding");
    replaceBySlice(op, op.getTable(), op.getDim(), *place, rewriter);
    return success();
  }
};

/// gather_nd x, (2, 0) -> slice x[2, 0]
struct SliceOfGatherNd : OpRewritePattern<GatherNdOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GatherNdOp op,
                                PatternRewriter &rewriter) const override {
    int64_t depth = op.getIndices().getType().getShape().back();
    auto place = op.getBatchDims() == 0
                     ? findPlace(op.getIndices(), op.getTable().getType(),
                                 /*dim=*/0, depth)
                     : std::nullopt;
    if (!place || !areTypesPlain(op))
      return rewriter.notifyMatchFailure(op, "no one place that is known");
    replaceBySlice(op, op.getTable(), /*dim=*/0, *place, rewriter);
    return success();
  }
};
} // namespace

void GatherOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *context) {
  patterns.add<SliceOfGather>(context);
}

void GatherNdOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                             MLIRContext *context) {
  patterns.add<SliceOfGatherNd>(context);
}
