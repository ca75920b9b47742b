// Recognition of logarithms that exporters write in a form that loses what the
// user's function keeps: log1p, logsigmoid and logaddexp all arrive as a plain
// log, of a sum that rounds, of a sigmoid that is 0, of exponentials that
// overflow.

#include "FoldConstants.h"
#include "Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace accel::transforms {
#define GEN_PASS_DEF_RECOGNIZELOG1PPASS
#include "lib/Transforms/Passes.h.inc"

namespace {

/// log(1 + exp(-|x|)), which neither overflows nor is lost beside 1.
Value softTail(OpBuilder &b, Location loc, Value x) {
  Value down = nn::NegOp::create(b, loc, nn::AbsOp::create(b, loc, x));
  return nn::Log1pOp::create(b, loc, nn::ExpOp::create(b, loc, down));
}

struct RecognizeLog1p : OpRewritePattern<nn::LogOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::LogOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto zeroLike = [&](Value x) -> Value {
      auto type = cast<RankedTensorType>(x.getType());
      return nn::ConstantOp::create(
          rewriter, loc,
          DenseElementsAttr::get(type,
                                 rewriter.getZeroAttr(type.getElementType())));
    };
    if (auto sigmoid = op.getInput().getDefiningOp<nn::SigmoidOp>()) {
      Value x = sigmoid.getInput();
      Value low = nn::MinOp::create(rewriter, loc, x, zeroLike(x));
      rewriter.replaceOpWithNewOp<nn::SubOp>(op, low,
                                             softTail(rewriter, loc, x));
      return success();
    }
    auto sum = op.getInput().getDefiningOp<nn::AddOp>();
    if (!sum)
      return rewriter.notifyMatchFailure(op, "of no sum and no sigmoid");
    for (auto [one, x] : {std::pair(sum.getLhs(), sum.getRhs()),
                          std::pair(sum.getRhs(), sum.getLhs())})
      if (getSplatValue(one) == 1.0) {
        rewriter.replaceOpWithNewOp<nn::Log1pOp>(op, x);
        return success();
      }
    auto lhs = sum.getLhs().getDefiningOp<nn::ExpOp>();
    auto rhs = sum.getRhs().getDefiningOp<nn::ExpOp>();
    if (!lhs || !rhs)
      return rewriter.notifyMatchFailure(op,
                                         "a sum without 1, and not of exps");
    Value x = lhs.getInput(), y = rhs.getInput();
    // Equal infinities have no difference.
    Value same =
        nn::CompareOp::create(rewriter, loc, nn::ComparePredicate::eq, x, y);
    Value apart = nn::SelectOp::create(rewriter, loc, same, zeroLike(x),
                                       nn::SubOp::create(rewriter, loc, x, y));
    rewriter.replaceOpWithNewOp<nn::AddOp>(
        op, nn::MaxOp::create(rewriter, loc, x, y),
        softTail(rewriter, loc, apart));
    return success();
  }
};

struct RecognizeLog1pPass : impl::RecognizeLog1pPassBase<RecognizeLog1pPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RecognizeLog1p>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace accel::transforms
