// The gradients of convolutions: each of the three ops is linear in both
// operands, and their transposes are the other two.

#include "Group.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
/// An op of the family at the same strides, dilations and paddings, whose
/// result has the dimensions of space of `like`.
template <typename Other, typename Op>
Value makeLike(Op op, const NNBuilder &e, Value lhs, Value rhs, Value like) {
  ArrayRef<int64_t> sizes =
      typeOf(like).getShape().take_back(op.getSizes().size());
  return e.make<Other>(lhs, rhs, sizes, op.getStrides(), op.getDilations(),
                       op.getLow());
}

struct Conv : GradientModel<Conv, nn::ConvOp> {
  static LogicalResult vjp(nn::ConvOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    Value input = op.getLhs(), weight = op.getRhs();
    out.push_back(makeLike<nn::ConvInputGradOp>(op, e, g, weight, input));
    out.push_back(makeLike<nn::ConvWeightGradOp>(op, e, input, g, weight));
    return success();
  }
};

struct ConvInputGrad : GradientModel<ConvInputGrad, nn::ConvInputGradOp> {
  static LogicalResult vjp(nn::ConvInputGradOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    Value gradient = op.getLhs(), weight = op.getRhs();
    out.push_back(makeLike<nn::ConvOp>(op, e, g, weight, gradient));
    out.push_back(makeLike<nn::ConvWeightGradOp>(op, e, g, gradient, weight));
    return success();
  }
};

struct ConvWeightGrad : GradientModel<ConvWeightGrad, nn::ConvWeightGradOp> {
  static LogicalResult vjp(nn::ConvWeightGradOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    Value input = op.getLhs(), gradient = op.getRhs();
    out.push_back(makeLike<nn::ConvInputGradOp>(op, e, gradient, g, input));
    out.push_back(makeLike<nn::ConvOp>(op, e, input, g, gradient));
    return success();
  }
};
} // namespace

void autodiff::attachConvolutionModels(MLIRContext *context) {
  nn::ConvOp::attachInterface<Conv>(*context);
  nn::ConvInputGradOp::attachInterface<ConvInputGrad>(*context);
  nn::ConvWeightGradOp::attachInterface<ConvWeightGrad>(*context);
}
