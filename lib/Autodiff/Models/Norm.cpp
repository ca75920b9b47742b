// Gradients of softmax and of layer normalisation.

#include "Group.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
struct Softmax : GradientModel<Softmax, nn::SoftmaxOp> {
  static LogicalResult vjp(nn::SoftmaxOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    Value y = op.getResult();
    ArrayRef<int64_t> shape = typeOf(y).getShape();
    int64_t dim = op.getDim();
    if (op.getLog()) {
      Value total = e.expand(e.sum(g, dim), dim, shape);
      out.push_back(e.sub(g, e.mul(e.make<nn::ExpOp>(y), total)));
    } else {
      Value total = e.expand(e.sum(e.mul(g, y), dim), dim, shape);
      out.push_back(e.mul(y, e.sub(g, total)));
    }
    return success();
  }
};

/// With x̂ the normalised input, r = 1/σ and h = g · scale:
/// dx = r (h - mean h - x̂ mean(h x̂)). Mean and r are computed again.
struct LayerNorm : GradientModel<LayerNorm, nn::LayerNormOp> {
  static LogicalResult vjp(nn::LayerNormOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    Value x = op.getInput();
    ArrayRef<int64_t> shape = typeOf(x).getShape();
    int64_t rank = shape.size(), first = op.getDim(), count = 1;
    auto outer = llvm::to_vector(llvm::seq<int64_t>(0, first));
    auto inner = llvm::to_vector(llvm::seq<int64_t>(first, rank));
    for (int64_t dim : inner)
      count *= shape[dim];
    auto mean = [&](Value v) { return e.scale(e.sum(v, inner), 1.0 / count); };
    auto expand = [&](Value v) { return e.expand(v, inner, shape); };

    Value centred = e.sub(x, expand(mean(x)));
    Value variance = mean(e.mul(centred, centred));
    Value r = expand(e.make<nn::RsqrtOp>(
        e.add(variance, e.splat(op.getEpsilon().convertToDouble(), variance))));
    Value normal = e.mul(centred, r);
    Value h = e.mul(g, e.broadcast(op.getScale(), shape));
    Value shifted = e.sub(h, expand(mean(h)));
    Value along = e.mul(normal, expand(mean(e.mul(h, normal))));
    out.push_back(e.mul(r, e.sub(shifted, along)));
    out.push_back(e.sum(e.mul(g, normal), outer));
    if (op.getBias())
      out.push_back(e.sum(g, outer));
    return success();
  }
};
} // namespace

void autodiff::attachNormModels(MLIRContext *context) {
  nn::SoftmaxOp::attachInterface<Softmax>(*context);
  nn::LayerNormOp::attachInterface<LayerNorm>(*context);
}
