// The meaning of constants, counters and what marks gradients and whole sums.

#include "Group.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

namespace {
struct Constant : EvaluateModel<Constant, nn::ConstantOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto constant = cast<nn::ConstantOp>(op);
    FailureOr<Tensor> value = Tensor::fromElements(constant.getValue());
    if (failed(value))
      return op->emitOpError() << "expected a value that can be read, found "
                               << "an attribute without its data";
    results.push_back(std::move(*value));
    return success();
  }
};

struct Iota : EvaluateModel<Iota, nn::IotaOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto iota = cast<nn::IotaOp>(op);
    Tensor result = makeResult(op);
    DimSplit split(result.getShape(), iota.getDim());
    for (int64_t at = 0; at < result.getNumElements(); ++at) {
      int64_t count = iota.getStart() + at / split.inner % split.size;
      if (result.isFloat())
        result.mutableFloats()[at] = static_cast<double>(count);
      else
        result.mutableInts()[at] = wrapToType(count, result.getElementType());
    }
    results.push_back(std::move(result));
    return success();
  }
};

/// What says something of its operand, and is it.
template <typename Op> struct Itself : EvaluateModel<Itself<Op>, Op> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    results.push_back(operands[0]);
    return success();
  }
};
} // namespace

void evaluate::attachStateModels(MLIRContext *context) {
  nn::ConstantOp::attachInterface<Constant>(*context);
  nn::IotaOp::attachInterface<Iota>(*context);
  nn::GradientOp::attachInterface<Itself<nn::GradientOp>>(*context);
  nn::CompleteOp::attachInterface<Itself<nn::CompleteOp>>(*context);
  nn::CutOp::attachInterface<Itself<nn::CutOp>>(*context);
}
