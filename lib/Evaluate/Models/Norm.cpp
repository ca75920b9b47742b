// The meaning of softmax and the normalisations.

#include "Group.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

namespace {
struct Softmax : EvaluateModel<Softmax, nn::SoftmaxOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto softmax = cast<nn::SoftmaxOp>(op);
    Tensor result = makeResult(op);
    DimSplit split(result.getShape(), softmax.getDim());
    const double *x = operands[0].floats().data();
    double *y = result.mutableFloats().data();
    for (int64_t outer = 0; outer < split.outer; ++outer)
      for (int64_t inner = 0; inner < split.inner; ++inner) {
        int64_t first = outer * split.size * split.inner + inner;
        auto at = [&](int64_t i) { return first + i * split.inner; };
        double largest = -INFINITY, sum = 0;
        for (int64_t i = 0; i < split.size; ++i)
          largest = std::fmax(largest, x[at(i)]);
        for (int64_t i = 0; i < split.size; ++i)
          sum += std::exp(x[at(i)] - largest);
        for (int64_t i = 0; i < split.size; ++i)
          y[at(i)] = softmax.getLog() ? x[at(i)] - largest - std::log(sum)
                                      : std::exp(x[at(i)] - largest) / sum;
      }
    results.push_back(std::move(result));
    return success();
  }
};

struct LayerNorm : EvaluateModel<LayerNorm, nn::LayerNormOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto norm = cast<nn::LayerNormOp>(op);
    Tensor result = makeResult(op);
    double epsilon = norm.getEpsilon().convertToDouble();
    ArrayRef<double> scale = operands[1].floats();
    int64_t size = scale.size();
    const double *x = operands[0].floats().data();
    double *y = result.mutableFloats().data();
    for (int64_t rest = result.getNumElements(); rest > 0;
         rest -= size, x += size, y += size) {
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < size; ++i)
        mean += x[i] / size;
      for (int64_t i = 0; i < size; ++i)
        variance += (x[i] - mean) * (x[i] - mean) / size;
      for (int64_t i = 0; i < size; ++i) {
        y[i] = (x[i] - mean) / std::sqrt(variance + epsilon) * scale[i];
        if (norm.getBias())
          y[i] += operands[2].floats()[i];
      }
    }
    results.push_back(std::move(result));
    return success();
  }
};
} // namespace

void evaluate::attachNormModels(MLIRContext *context) {
  nn::SoftmaxOp::attachInterface<Softmax>(*context);
  nn::LayerNormOp::attachInterface<LayerNorm>(*context);
}
