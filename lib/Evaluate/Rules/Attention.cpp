// The meaning of attention, one row of scores at a time.

#include "lib/Evaluate/Rules/Rules.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

namespace {
struct Attention : EvaluateModel<Attention, nn::AttentionOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto attention = cast<nn::AttentionOp>(op);
    Tensor result = makeResult(op);
    const Tensor &query = operands[0], &key = operands[1], &value = operands[2];
    int64_t batches = query.getDimSize(0), heads = query.getDimSize(1),
            rows = query.getDimSize(2), depth = query.getDimSize(3),
            groups = key.getDimSize(1), keys = key.getDimSize(2),
            width = value.getDimSize(3);
    double scale = attention.getScale().convertToDouble();

    // Strides of the mask, 0 along the dimensions that it repeats.
    SmallVector<int64_t> maskStrides(3, 0);
    if (attention.getMask())
      for (int64_t dim = 0; dim < 3; ++dim)
        if (operands[3].getDimSize(dim) != 1)
          maskStrides[dim] = getRowMajorStrides(operands[3].getShape())[dim];

    std::vector<double> scores(keys);
    for (int64_t batch = 0; batch < batches; ++batch)
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t row = 0; row < rows; ++row) {
          int64_t group = batch * groups + head / (heads / groups);
          int64_t line = (batch * heads + head) * rows + row;
          const double *q = query.floats().data() + line * depth;
          const double *k = key.floats().data() + group * keys * depth;
          const double *v = value.floats().data() + group * keys * width;
          double *out = result.mutableFloats().data() + line * width;
          int64_t mask = batch * maskStrides[0] + head * maskStrides[1] +
                         row * maskStrides[2];
          double largest = -INFINITY, sum = 0;
          for (int64_t t = 0; t < keys; ++t) {
            double product = 0;
            for (int64_t d = 0; d < depth; ++d)
              product += q[d] * k[t * depth + d];
            scores[t] = scale * product;
            if (attention.getMask() && operands[3].isFloat())
              scores[t] += operands[3].floats()[mask + t];
            else if (attention.getMask() && !operands[3].ints()[mask + t])
              scores[t] = -INFINITY;
            if (attention.getCausal() && t > row + keys - rows)
              scores[t] = -INFINITY;
            largest = std::fmax(largest, scores[t]);
          }
          if (largest == -INFINITY && attention.getZeroMaskedRows() &&
              llvm::none_of(scores, [](double s) { return std::isnan(s); }))
            continue; // the row stays zero
          for (double &score : scores)
            sum += score = std::exp(score - largest);
          // Keys of weight 0 count as well: 0 · NaN is NaN, as in a product.
          for (int64_t t = 0; t < keys; ++t)
            for (int64_t e = 0; e < width; ++e)
              out[e] += scores[t] / sum * v[t * width + e];
        }
    results.push_back(std::move(result));
    return success();
  }
};
} // namespace

void evaluate::attachAttentionModels(MLIRContext *context) {
  nn::AttentionOp::attachInterface<Attention>(*context);
}
