// Simplifications that hold wherever the op stands: neutral operands, known
// conditions, small powers, and transposes that a matrix product can take
// along. All leave types with an encoding alone: what a sharded value is for,
// only the passes of its phase know.

#include "dialects/NN/NN.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace accel::nn;

/// Whether `attribute` holds `value` everywhere.
static bool isSplat(Attribute attribute, double value) {
  auto elements = dyn_cast_or_null<DenseElementsAttr>(attribute);
  if (!elements || !elements.isSplat())
    return false;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<FloatAttr>().getValueAsDouble() == value;
  return elements.getSplatValue<APInt>() ==
         APInt(elements.getElementType().getIntOrFloatBitWidth(),
               static_cast<int64_t>(value), /*isSigned=*/true,
               /*implicitTrunc=*/true);
}

/// `value` in place of an op of `type`, if it is of that type to the letter.
static OpFoldResult sameType(Value value, Type type) {
  return value.getType() == type ? OpFoldResult(value) : OpFoldResult();
}

// -0 + 0 is 0, not -0: the one bit that dropping a zero can change.
OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getRhs(), 0))
    return sameType(getLhs(), getType());
  if (isSplat(adaptor.getLhs(), 0))
    return sameType(getRhs(), getType());
  return {};
}

OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  return isSplat(adaptor.getRhs(), 0) ? sameType(getLhs(), getType())
                                      : OpFoldResult();
}

OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getRhs(), 1))
    return sameType(getLhs(), getType());
  if (isSplat(adaptor.getLhs(), 1))
    return sameType(getRhs(), getType());
  return {};
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  return isSplat(adaptor.getRhs(), 1) ? sameType(getLhs(), getType())
                                      : OpFoldResult();
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  auto condition = dyn_cast_or_null<DenseElementsAttr>(adaptor.getCondition());
  if (condition && condition.isSplat())
    return sameType(condition.getSplatValue<bool>() ? getOnTrue()
                                                    : getOnFalse(),
                    getType());
  return getOnTrue() == getOnFalse() ? sameType(getOnTrue(), getType())
                                     : OpFoldResult();
}

namespace {

bool isPlain(Value value) {
  return !cast<RankedTensorType>(value.getType()).getEncoding();
}

/// x^2 = x·x, x^3 = x·x·x, x^½ = √x, x^1 = x.
struct ExpandSmallPower : OpRewritePattern<PowOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PowOp op,
                                PatternRewriter &rewriter) const override {
    Attribute exponent;
    if (!matchPattern(op.getRhs(), m_Constant(&exponent)))
      return rewriter.notifyMatchFailure(op, "exponent is not a constant");
    Value x = op.getLhs();
    if (!isPlain(x) || x.getType() != op.getType())
      return rewriter.notifyMatchFailure(op, "type with an encoding");
    if (isSplat(exponent, 1)) {
      rewriter.replaceOp(op, x);
      return success();
    }
    if (isSplat(exponent, 2) || isSplat(exponent, 3)) {
      Value power = MulOp::create(rewriter, op.getLoc(), x, x);
      if (isSplat(exponent, 3))
        power = MulOp::create(rewriter, op.getLoc(), power, x);
      rewriter.replaceOp(op, power);
      return success();
    }
    if (isa<FloatType>(op.getType().getElementType()) &&
        isSplat(exponent, 0.5)) {
      rewriter.replaceOpWithNewOp<SqrtOp>(op, x);
      return success();
    }
    return rewriter.notifyMatchFailure(op, "not a small power");
  }
};

/// broadcast(broadcast x) -> broadcast x
struct MergeBroadcasts : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<BroadcastOp>();
    if (!inner || !isPlain(inner.getInput()) || !isPlain(op.getResult()))
      return rewriter.notifyMatchFailure(op, "no broadcast before it");
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(),
                                             inner.getInput());
    return success();
  }
};

/// A transpose of the last two dimensions between two reshapes that merge the
/// leading ones and split them again is a transpose:
/// reshape(transpose(reshape x [a, b, m, n] to [ab, m, n]) [0, 2, 1]) to
/// [a, b, n, m] -> transpose x [0, 1, 3, 2].
struct UnwrapBatchedTranspose : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto transpose = op.getInput().getDefiningOp<TransposeOp>();
    auto merge = transpose ? transpose.getInput().getDefiningOp<ReshapeOp>()
                           : ReshapeOp();
    if (!merge)
      return rewriter.notifyMatchFailure(op, "no transpose between reshapes");
    Value x = merge.getInput();
    if (!isPlain(x) || !isPlain(op.getResult()))
      return rewriter.notifyMatchFailure(op, "type with an encoding");
    ArrayRef<int64_t> from = cast<RankedTensorType>(x.getType()).getShape();
    ArrayRef<int64_t> to = op.getType().getShape();
    ArrayRef<int64_t> middle = merge.getType().getShape();
    if (from.size() < 2 || middle.size() < 2 || from.size() != to.size() ||
        from.take_back(2) != middle.take_back(2) ||
        from.drop_back(2) != to.drop_back(2) ||
        to[to.size() - 1] != from[from.size() - 2] ||
        to[to.size() - 2] != from[from.size() - 1])
      return rewriter.notifyMatchFailure(op, "the last two dimensions change");
    auto swapsLast = [](ArrayRef<int64_t> permutation) {
      int64_t rank = permutation.size();
      return llvm::is_sorted(permutation.drop_back(2)) &&
             permutation[rank - 2] == rank - 1 &&
             permutation[rank - 1] == rank - 2;
    };
    if (!swapsLast(transpose.getPermutation()))
      return rewriter.notifyMatchFailure(op, "leading dimensions move");
    SmallVector<int64_t> permutation =
        llvm::to_vector(llvm::seq<int64_t>(from.size()));
    std::swap(permutation[from.size() - 1], permutation[from.size() - 2]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), x, permutation);
    return success();
  }
};

/// A transpose of the last two dimensions of an operand becomes a flag of the
/// matrix product, which reads it at no cost.
struct TakeTransposeAlong : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    Value lhs = untransposed(op.getLhs()), rhs = untransposed(op.getRhs());
    if (!lhs && !rhs)
      return rewriter.notifyMatchFailure(op, "no operand is transposed");
    rewriter.modifyOpInPlace(op, [&] {
      if (lhs) {
        op.getLhsMutable().assign(lhs);
        op.setTransposeLhs(!op.getTransposeLhs());
      }
      if (rhs) {
        op.getRhsMutable().assign(rhs);
        op.setTransposeRhs(!op.getTransposeRhs());
      }
    });
    return success();
  }

  static Value untransposed(Value value) {
    auto transpose = value.getDefiningOp<TransposeOp>();
    if (!transpose || !isPlain(transpose.getInput()))
      return nullptr;
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    int64_t rank = permutation.size();
    bool swaps = permutation[rank - 1] == rank - 2 &&
                 permutation[rank - 2] == rank - 1 &&
                 llvm::is_sorted(permutation.drop_back(2));
    return swaps ? transpose.getInput() : Value();
  }
};

} // namespace

void PowOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                        MLIRContext *context) {
  patterns.add<ExpandSmallPower>(context);
}
void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<MergeBroadcasts>(context);
}
void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<UnwrapBatchedTranspose>(context);
}
void MatmulOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *context) {
  patterns.add<TakeTransposeAlong>(context);
}
