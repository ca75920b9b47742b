// Gradients of reductions and running sums.

#include "Group.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

/// For each element, the product of the others that it is multiplied with. Not
/// the product divided by the element, which may be 0: the n elements are
/// repeated n times, and in the i-th copy the i-th is 1 (n² work and memory).
static Value prodOfOthers(const NNBuilder &e, Value x, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> order, moved, inverse(typeOf(x).getRank());
  for (int64_t dim = 0; dim < typeOf(x).getRank(); ++dim)
    if (!llvm::is_contained(dims, dim))
      order.push_back(dim);
  llvm::append_range(order, dims);
  int64_t rows = 1, n = 1;
  for (auto [to, from] : llvm::enumerate(order)) {
    inverse[from] = to;
    moved.push_back(typeOf(x).getDimSize(from));
    (llvm::is_contained(dims, from) ? n : rows) *= moved.back();
  }
  Value copies = e.broadcast(
      e.reshape(e.make<nn::TransposeOp>(x, order), {rows, 1, n}), {rows, n, n});
  ArrayRef<int64_t> shape = typeOf(copies).getShape();
  Value self =
      e.compare(nn::ComparePredicate::eq, e.iota(shape, 1), e.iota(shape, 2));
  Value others = e.make<nn::ReduceOp>(
      nn::ReductionKind::prod, e.select(self, e.splat(1, copies), copies),
      ArrayRef<int64_t>{2}, /*first=*/false);
  return e.make<nn::TransposeOp>(e.reshape(others, moved), inverse);
}

namespace {
struct Reduce : GradientModel<Reduce, nn::ReduceOp> {
  static LogicalResult vjp(nn::ReduceOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    Value x = op.getInput();
    ArrayRef<int64_t> shape = typeOf(x).getShape(), dims = op.getDims();
    if (op.getKind() == nn::ReductionKind::prod) {
      out.push_back(e.mul(e.expand(g, dims, shape), prodOfOthers(e, x, dims)));
      return success();
    }
    if (op.getKind() == nn::ReductionKind::sum) {
      out.push_back(e.expand(g, dims, shape));
      return success();
    }
    Value best = e.compare(nn::ComparePredicate::eq, x,
                           e.expand(op.getResult(), dims, shape));
    if (op.getFirst()) {
      Value place = e.iota(shape, dims[0]);
      Value end = e.splat(shape[dims[0]], place);
      Value first = e.make<nn::ReduceOp>(nn::ReductionKind::min,
                                         e.select(best, place, end), dims,
                                         /*first=*/false);
      Value isFirst = e.compare(nn::ComparePredicate::eq, place,
                                e.expand(first, dims, shape));
      out.push_back(e.select(isFirst, e.expand(g, dims, shape), e.splat(0, x)));
      return success();
    }
    // The elements that attain the extreme share its gradient evenly.
    Value count = e.sum(e.cast(best, typeOf(x).getElementType()), dims);
    out.push_back(
        e.select(best, e.expand(e.div(g, count), dims, shape), e.splat(0, x)));
    return success();
  }
};

struct Cumsum : GradientModel<Cumsum, nn::CumsumOp> {
  static LogicalResult vjp(nn::CumsumOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    out.push_back(e.make<nn::CumsumOp>(g, static_cast<uint64_t>(op.getDim()),
                                       op.getExclusive(), !op.getReverse()));
    return success();
  }
};
} // namespace

void autodiff::attachReductionModels(MLIRContext *context) {
  nn::ReduceOp::attachInterface<Reduce>(*context);
  nn::CumsumOp::attachInterface<Cumsum>(*context);
}
