// Gradients of reductions and running sums.

#include "lib/Autodiff/Rules/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
struct Reduce : GradientModel<Reduce, nn::ReduceOp> {
  static LogicalResult vjp(nn::ReduceOp op, const Emit &e, Value g,
                           SmallVectorImpl<Value> &out) {
    Value x = op.getInput();
    ArrayRef<int64_t> shape = typeOf(x).getShape(), dims = op.getDims();
    if (op.getKind() == nn::ReductionKind::prod)
      return op.emitOpError() << "has no gradient rule for 'prod', expected "
                                 "'sum', 'max' or 'min'";
    if (op.getKind() == nn::ReductionKind::sum) {
      out.push_back(e.expand(g, dims, shape));
      return success();
    }
    // The elements that attain the extreme share its gradient evenly.
    Value best = e.compare(nn::ComparePredicate::eq, x,
                           e.expand(op.getResult(), dims, shape));
    Value count = e.sum(e.cast(best, typeOf(x).getElementType()), dims);
    out.push_back(
        e.select(best, e.expand(e.div(g, count), dims, shape), e.splat(0, x)));
    return success();
  }
};

struct Cumsum : GradientModel<Cumsum, nn::CumsumOp> {
  static LogicalResult vjp(nn::CumsumOp op, const Emit &e, Value g,
                           SmallVectorImpl<Value> &out) {
    out.push_back(e.make<nn::CumsumOp>(g, static_cast<uint64_t>(op.getDim()),
                                       op.getExclusive(), !op.getReverse()));
    return success();
  }
};
} // namespace

void autodiff::attachReductionRules(MLIRContext *context) {
  nn::ReduceOp::attachInterface<Reduce>(*context);
  nn::CumsumOp::attachInterface<Cumsum>(*context);
}
