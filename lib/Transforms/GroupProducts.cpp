// Mixtures of experts as exporters write them: for each row a copy of the
// matrix that its index picks, and one product of a batch of single rows. They
// are one grouped product, which needs no copies.

#include "Passes.h"
#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace accel::transforms {
#define GEN_PASS_DEF_GROUPPRODUCTSPASS
#include "lib/Transforms/Passes.h.inc"

namespace {

/// Matrices [G, a, b] of which an index picks one for each row.
struct Picked {
  Value matrices, index;
  bool transposed; ///< between the picking and the product
};

/// Whether a transpose swaps the last two dimensions and nothing else.
bool swapsLastTwo(nn::TransposeOp transpose) {
  ArrayRef<int64_t> order = transpose.getPermutation();
  int64_t rank = order.size();
  for (int64_t dim = 0; dim + 2 < rank; ++dim)
    if (order[dim] != dim)
      return false;
  return rank >= 2 && order[rank - 1] == rank - 2;
}

std::optional<Picked> matchPicked(Value value) {
  bool transposed = false;
  if (auto transpose = value.getDefiningOp<nn::TransposeOp>();
      transpose && swapsLastTwo(transpose)) {
    transposed = true;
    value = transpose.getInput();
  }
  if (auto gather = value.getDefiningOp<nn::GatherOp>())
    if (gather.getDim() == 0 && typeOf(gather.getTable()).getRank() == 3 &&
        !gather.getPaddingIndex())
      return Picked{gather.getTable(), gather.getIndices(), transposed};
  if (auto gather = value.getDefiningOp<nn::GatherNdOp>())
    if (gather.getBatchDims() == 0 &&
        typeOf(gather.getTable()).getRank() == 3 &&
        shapeOf(gather.getIndices()).back() == 1)
      return Picked{gather.getTable(), gather.getIndices(), transposed};
  return std::nullopt;
}

/// Whether an index is known to count from the begin.
bool isNeverNegative(Value index) {
  while (Operation *op = index.getDefiningOp()) {
    if (isa<nn::TopKOp, nn::IotaOp>(op))
      return true;
    if (!isa<nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp, nn::SliceOp>(op))
      return false;
    index = op->getOperand(0);
  }
  return false;
}

/// The groups of rows: indices from the end count from the begin. -1 would be
/// no group; what is outside stays so.
Value makeGroups(OpBuilder &b, Location loc, Value index, int64_t count) {
  auto type =
      RankedTensorType::get({typeOf(index).getNumElements()}, b.getI64Type());
  bool isPlain = isNeverNegative(index);
  if (typeOf(index).getElementType() != type.getElementType())
    index = nn::CastOp::create(
        b, loc, typeOf(index).clone(type.getElementType()), index);
  if (typeOf(index) != type)
    index = nn::ReshapeOp::create(b, loc, type, index);
  if (isPlain)
    return index;
  auto splat = [&](int64_t value) -> Value {
    return nn::ConstantOp::create(b, loc, DenseElementsAttr::get(type, value));
  };
  auto compare = [&](nn::ComparePredicate predicate, int64_t value) -> Value {
    return nn::CompareOp::create(b, loc, predicate, index, splat(value));
  };
  Value fromEnd =
      nn::AndOp::create(b, loc, compare(nn::ComparePredicate::lt, 0),
                        compare(nn::ComparePredicate::ge, -count));
  return nn::SelectOp::create(
      b, loc, fromEnd, nn::AddOp::create(b, loc, index, splat(count)), index);
}

struct GroupProducts : OpRewritePattern<nn::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::MatmulOp op,
                                PatternRewriter &rewriter) const override {
    int64_t rank = op.getType().getRank();
    std::optional<Picked> picked;
    Value rows;
    bool transposed; // the matrices are [G, columns, inner]
    if (op.getType().getDimSize(rank - 2) == 1 &&
        (picked = matchPicked(op.getRhs()))) {
      rows = op.getLhs();
      transposed = op.getTransposeRhs() != picked->transposed;
    } else if (op.getType().getDimSize(rank - 1) == 1 &&
               (picked = matchPicked(op.getLhs()))) {
      rows = op.getRhs();
      transposed = op.getTransposeLhs() == picked->transposed;
    } else {
      return rewriter.notifyMatchFailure(op, "no single rows of picked ones");
    }
    if (typeOf(rows).getRank() != rank || rank < 3)
      return rewriter.notifyMatchFailure(op, "a matrix for all rows");
    Location loc = op.getLoc();
    int64_t inner = shapeOf(picked->matrices)[transposed ? 2 : 1];
    int64_t count = typeOf(rows).getNumElements() / inner;
    auto element = typeOf(rows).getElementType();
    rows = nn::ReshapeOp::create(
        rewriter, loc, RankedTensorType::get({count, inner}, element), rows);
    Value groups =
        makeGroups(rewriter, loc, picked->index, shapeOf(picked->matrices)[0]);
    Value result = nn::GroupedMatmulOp::create(
        rewriter, loc, rows, picked->matrices, groups, transposed);
    rewriter.replaceOpWithNewOp<nn::ReshapeOp>(op, op.getType(), result);
    return success();
  }
};

struct GroupProductsPass : impl::GroupProductsPassBase<GroupProductsPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<GroupProducts>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace accel::transforms
