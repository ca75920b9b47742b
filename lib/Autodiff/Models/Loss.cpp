// The gradient of cross-entropy: probabilities less the labels' ones.

#include "Group.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;
using nn::ComparePredicate;

namespace {
struct CrossEntropy : GradientModel<CrossEntropy, nn::CrossEntropyOp> {
  static LogicalResult vjp(nn::CrossEntropyOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    Value logits = op.getLogits();
    ArrayRef<int64_t> shape = typeOf(logits).getShape();
    int64_t last = shape.size() - 1;
    Value labels =
        e.cast(op.getLabels(), IntegerType::get(op.getContext(), 64));
    Value ignored = e.make<nn::ConstantOp>(
        DenseElementsAttr::get(typeOf(labels), int64_t(op.getIgnoreIndex())));
    ignored = e.compare(ComparePredicate::eq, labels, ignored);
    Value isLabel = e.compare(ComparePredicate::eq, e.iota(shape, last),
                              e.expand(labels, last, shape));
    Value p = e.make<nn::SoftmaxOp>(logits, last, false);
    Value less = e.select(isLabel, e.sub(p, e.splat(1, p)), p);
    out.push_back(e.select(e.expand(ignored, last, shape), e.splat(0, p),
                           e.mul(e.expand(g, last, shape), less)));
    out.push_back(Value());
    return success();
  }
};
} // namespace

void autodiff::attachLossModels(MLIRContext *context) {
  nn::CrossEntropyOp::attachInterface<CrossEntropy>(*context);
}
