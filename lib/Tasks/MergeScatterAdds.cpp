// Adds the slices of a scatter to the sum that it would be added to, so that
// there is one table instead of three.

#include "Passes.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace accel::tasks {
#define GEN_PASS_DEF_MERGESCATTERADDSPASS
#include "lib/Tasks/Passes.h.inc"

namespace {
/// x + scatter_add(0, i, u) = scatter_add(x, i, u).
struct MergeIntoSum : OpRewritePattern<nn::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::AddOp add,
                                PatternRewriter &rewriter) const override {
    for (auto [term, other] : {std::pair(add.getRhs(), add.getLhs()),
                               std::pair(add.getLhs(), add.getRhs())}) {
      auto scatter = term.getDefiningOp<nn::ScatterAddOp>();
      if (!scatter || !scatter->hasOneUse())
        continue;
      if (!matchPattern(scatter.getInit(), m_AnyZeroFloat()) &&
          !matchPattern(scatter.getInit(), m_Zero()))
        continue;
      auto merged = nn::ScatterAddOp::create(
          rewriter, rewriter.getFusedLoc({scatter.getLoc(), add.getLoc()}),
          add.getType(), other, scatter.getIndices(), scatter.getUpdates(),
          scatter.getDim(), scatter.getBatchDims());
      rewriter.replaceOp(add, merged);
      return success();
    }
    return rewriter.notifyMatchFailure(
        add, "no term is a scatter onto zeros that only this sum reads");
  }
};

struct MergeScatterAddsPass
    : impl::MergeScatterAddsPassBase<MergeScatterAddsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<MergeIntoSum>(&getContext());
    GreedyRewriteConfig config;
    // Constants stay where the tasks put them.
    config.enableFolding(false)
        .enableConstantCSE(false)
        .setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};
} // namespace
} // namespace accel::tasks
