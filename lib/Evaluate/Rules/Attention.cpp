// The meaning of attention and its gradient, one row of scores at a time.

#include "lib/Evaluate/Rules/Rules.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

namespace {
/// Where the rows of one attention lie in its operands, and a row's weights.
struct Rows {
  /// `mask` is null if there is none.
  template <typename Op>
  Rows(Op op, ArrayRef<Tensor> operands, const Tensor *mask)
      : query(operands[0]), key(operands[1]), mask(mask),
        heads(query.getDimSize(1)), rows(query.getDimSize(2)),
        depth(query.getDimSize(3)), groups(key.getDimSize(1)),
        keys(key.getDimSize(2)), scale(op.getScale().convertToDouble()),
        causal(op.getCausal()), zeroMaskedRows(op.getZeroMaskedRows()),
        maskStrides(3, 0) {
    // 0 along the dimensions that the mask repeats.
    for (int64_t dim = 0; mask && dim < 3; ++dim)
      if (mask->getDimSize(dim) != 1)
        maskStrides[dim] = getRowMajorStrides(mask->getShape())[dim];
  }

  int64_t count() const { return query.getDimSize(0) * heads * rows; }
  /// Which of the key heads of all batches row `line` reads.
  int64_t groupOf(int64_t line) const {
    int64_t batch = line / rows / heads, head = line / rows % heads;
    return batch * groups + head / (heads / groups);
  }

  /// The softmax of row `line`; false where nothing is let through and that
  /// gives zeros.
  bool getWeights(int64_t line, std::vector<double> &weights) const {
    int64_t row = line % rows;
    const double *q = query.floats().data() + line * depth;
    const double *k = key.floats().data() + groupOf(line) * keys * depth;
    int64_t first = line / rows / heads * maskStrides[0] +
                    line / rows % heads * maskStrides[1] + row * maskStrides[2];
    double largest = -INFINITY, sum = 0;
    weights.assign(keys, 0);
    for (int64_t t = 0; t < keys; ++t) {
      double product = 0;
      for (int64_t d = 0; d < depth; ++d)
        product += q[d] * k[t * depth + d];
      weights[t] = scale * product;
      if (mask && mask->isFloat())
        weights[t] += mask->floats()[first + t];
      else if (mask && !mask->ints()[first + t])
        weights[t] = -INFINITY;
      if (causal && t > row + keys - rows)
        weights[t] = -INFINITY;
      largest = std::fmax(largest, weights[t]);
    }
    if (largest == -INFINITY && zeroMaskedRows &&
        llvm::none_of(weights, [](double w) { return std::isnan(w); }))
      return false;
    for (double &weight : weights)
      sum += weight = std::exp(weight - largest);
    for (double &weight : weights)
      weight /= sum;
    return true;
  }

  const Tensor &query, &key;
  const Tensor *mask;
  int64_t heads, rows, depth, groups, keys;
  double scale;
  bool causal, zeroMaskedRows;
  SmallVector<int64_t> maskStrides;
};

struct Attention : EvaluateModel<Attention, nn::AttentionOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto attention = cast<nn::AttentionOp>(op);
    Tensor result = makeResult(op);
    Rows rows(attention, operands,
              attention.getMask() ? &operands[3] : nullptr);
    int64_t width = operands[2].getDimSize(3);
    std::vector<double> weights;
    for (int64_t line = 0; line < rows.count(); ++line) {
      if (!rows.getWeights(line, weights))
        continue; // the row stays zero
      const double *v =
          operands[2].floats().data() + rows.groupOf(line) * rows.keys * width;
      double *out = result.mutableFloats().data() + line * width;
      // Keys of weight 0 count as well: 0 · NaN is NaN, as in a product.
      for (int64_t t = 0; t < rows.keys; ++t)
        for (int64_t e = 0; e < width; ++e)
          out[e] += weights[t] * v[t * width + e];
    }
    results.push_back(std::move(result));
    return success();
  }
};

struct AttentionGrad : EvaluateModel<AttentionGrad, nn::AttentionGradOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto grad = cast<nn::AttentionGradOp>(op);
    Tensor dQuery = makeResult(op, 0), dKey = makeResult(op, 1),
           dValue = makeResult(op, 2);
    Rows rows(grad, operands, grad.getMask() ? &operands[4] : nullptr);
    int64_t width = operands[2].getDimSize(3), depth = rows.depth;
    std::vector<double> weights, slopes(rows.keys);
    for (int64_t line = 0; line < rows.count(); ++line) {
      if (!rows.getWeights(line, weights))
        continue; // zeros depend on nothing
      int64_t first = rows.groupOf(line) * rows.keys;
      const double *out = operands[3].floats().data() + line * width;
      const double *q = rows.query.floats().data() + line * depth;
      double total = 0;
      for (int64_t t = 0; t < rows.keys; ++t) {
        const double *v = operands[2].floats().data() + (first + t) * width;
        slopes[t] = 0;
        for (int64_t e = 0; e < width; ++e)
          slopes[t] += out[e] * v[e];
        total += slopes[t] * weights[t];
      }
      for (int64_t t = 0; t < rows.keys; ++t) {
        double slope = rows.scale * weights[t] * (slopes[t] - total);
        const double *k = rows.key.floats().data() + (first + t) * depth;
        for (int64_t d = 0; d < depth; ++d) {
          dQuery.mutableFloats()[line * depth + d] += slope * k[d];
          dKey.mutableFloats()[(first + t) * depth + d] += slope * q[d];
        }
        for (int64_t e = 0; e < width; ++e)
          dValue.mutableFloats()[(first + t) * width + e] +=
              weights[t] * out[e];
      }
    }
    results.append({std::move(dQuery), std::move(dKey), std::move(dValue)});
    return success();
  }
};
} // namespace

void evaluate::attachAttentionModels(MLIRContext *context) {
  nn::AttentionOp::attachInterface<Attention>(*context);
  nn::AttentionGradOp::attachInterface<AttentionGrad>(*context);
}
