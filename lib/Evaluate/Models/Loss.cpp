// The meaning of the losses.

#include "Group.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

namespace {
struct CrossEntropy : EvaluateModel<CrossEntropy, nn::CrossEntropyOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto loss = cast<nn::CrossEntropyOp>(op);
    Tensor result = makeResult(op);
    int64_t classes = operands[0].getShape().back();
    ArrayRef<double> row = operands[0].floats();
    MutableArrayRef<double> out = result.mutableFloats();
    for (auto [index, label] : llvm::enumerate(operands[1].ints())) {
      ArrayRef<double> logits = row.slice(index * classes, classes);
      if (label == static_cast<int64_t>(loss.getIgnoreIndex()))
        continue; // stays zero
      if (label < 0 || label >= classes)
        return op->emitOpError()
               << "expected labels in [0, " << classes - 1 << "] or "
               << static_cast<int64_t>(loss.getIgnoreIndex()) << ", found "
               << label;
      double largest = -INFINITY, sum = 0;
      for (double logit : logits)
        largest = std::fmax(largest, logit);
      for (double logit : logits)
        sum += std::exp(logit - largest);
      out[index] = largest + std::log(sum) - logits[label];
    }
    results.push_back(std::move(result));
    return success();
  }
};
} // namespace

void evaluate::attachLossModels(MLIRContext *context) {
  nn::CrossEntropyOp::attachInterface<CrossEntropy>(*context);
}
