// The gradients of matrix products: two products each.

#include "Group.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
/// All but the last dimension made one.
Value flatten(const NNBuilder &e, Value x) {
  int64_t last = typeOf(x).getShape().back(), rows = 1;
  for (int64_t size : typeOf(x).getShape().drop_back())
    rows *= size;
  return e.reshape(x, {rows, last});
}

/// The gradient of a linear layer is of the layer.
Value tag(nn::MatmulOp op, Value gradient, nn::ProductKind kind) {
  auto forward = op->getAttrOfType<nn::ProductAttr>(nn::kProductAttr);
  auto product = gradient.getDefiningOp<nn::MatmulOp>();
  if (forward && product)
    product->setAttr(
        nn::kProductAttr,
        nn::ProductAttr::get(op.getContext(), forward.getSite(), kind));
  return gradient;
}

struct Matmul : GradientModel<Matmul, nn::MatmulOp> {
  static LogicalResult vjp(nn::MatmulOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    Value lhs = op.getLhs(), rhs = op.getRhs();
    if (typeOf(lhs).getElementTypeBitWidth() == 8)
      return op.emitError() << "expected operands of 16 bits or more of a "
                               "product that is differentiated, found "
                            << lhs.getType() << " and " << rhs.getType();
    bool transposed = op.getTransposeLhs();
    Value dLhs = tag(op, e.matmul(g, rhs, false, !op.getTransposeRhs()),
                     nn::ProductKind::dgrad);
    out.push_back(transposed ? e.swapLast(dLhs) : dLhs);
    // A right side without batch dimensions sums over them: as rows.
    if (typeOf(lhs).getRank() > typeOf(rhs).getRank()) {
      lhs = flatten(e, transposed ? e.swapLast(lhs) : lhs);
      transposed = false;
      g = flatten(e, g);
    }
    out.push_back(tag(op,
                      op.getTransposeRhs()
                          ? e.matmul(g, lhs, true, transposed)
                          : e.matmul(lhs, g, !transposed, false),
                      nn::ProductKind::wgrad));
    return success();
  }
};
struct GroupedMatmul : GradientModel<GroupedMatmul, nn::GroupedMatmulOp> {
  static LogicalResult vjp(nn::GroupedMatmulOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    Value lhs = op.getLhs(), groups = op.getGroups();
    bool transposed = op.getTransposeRhs();
    out.push_back(
        e.make<nn::GroupedMatmulOp>(g, op.getRhs(), groups, !transposed));
    out.push_back(e.make<nn::GroupedMatmulGradOp>(
        transposed ? g : lhs, transposed ? lhs : g, groups,
        static_cast<uint64_t>(typeOf(op.getRhs()).getDimSize(0))));
    out.push_back(Value());
    return success();
  }
};
} // namespace

void autodiff::attachLinearModels(MLIRContext *context) {
  nn::GroupedMatmulOp::attachInterface<GroupedMatmul>(*context);
  nn::MatmulOp::attachInterface<Matmul>(*context);
}
