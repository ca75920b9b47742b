// The meaning of attention and its gradient, one row of scores at a time.

#include "Group.h"

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
        keys(key.getDimSize(2)), diagonal(op.getDiagonal()),
        scale(op.getScale().convertToDouble()), causal(op.getCausal()),
        zeroMaskedRows(op.getZeroMaskedRows()),
        levels(mask && mask->getDimSize(3) > keys ? 1 : 0), maskStrides(3, 0) {
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

  /// The scores of row `line`, -infinity where they are hidden.
  void getScores(int64_t line, std::vector<double> &scores) const {
    int64_t row = line % rows;
    const double *q = query.floats().data() + line * depth;
    const double *k = key.floats().data() + groupOf(line) * keys * depth;
    int64_t first = line / rows / heads * maskStrides[0] +
                    line / rows % heads * maskStrides[1] + row * maskStrides[2];
    scores.assign(keys, 0);
    for (int64_t t = 0; t < keys; ++t) {
      double product = 0;
      for (int64_t d = 0; d < depth; ++d)
        product += q[d] * k[t * depth + d];
      scores[t] = scale * product;
      if (mask && mask->isFloat())
        scores[t] += mask->floats()[first + levels + t];
      else if (mask && !mask->ints()[first + t])
        scores[t] = -INFINITY;
      if (levels)
        scores[t] -= mask->floats()[first];
      if (causal && t > row + diagonal)
        scores[t] = -INFINITY;
    }
  }

  /// The softmax of row `line` and its log-sum-exp; false where nothing is let
  /// through and that gives zeros.
  bool getWeights(int64_t line, std::vector<double> &weights,
                  double &logSumExp) const {
    getScores(line, weights);
    double largest = -INFINITY, sum = 0;
    for (double weight : weights)
      largest = std::fmax(largest, weight);
    bool nothing = largest == -INFINITY && llvm::none_of(weights, [](double w) {
                     return std::isnan(w);
                   });
    for (double &weight : weights)
      sum += weight = std::exp(weight - largest);
    for (double &weight : weights)
      weight /= sum;
    logSumExp = nothing ? largest : largest + std::log(sum);
    return !nothing || !zeroMaskedRows;
  }

  /// The same softmax, of the log-sum-exp.
  bool getWeightsAgain(int64_t line, double logSumExp,
                       std::vector<double> &weights) const {
    getScores(line, weights);
    bool nothing = logSumExp == -INFINITY;
    double sum = 0;
    for (double &weight : weights)
      sum += weight = nothing ? std::nan("") : std::exp(weight - logSumExp);
    // Numbers of a mask may leave scores that are far from 0 and alike, and a
    // log-sum-exp in which their number is lost.
    if (mask && mask->isFloat() && sum > 1)
      for (double &weight : weights)
        weight /= sum;
    return !nothing || !zeroMaskedRows;
  }

  const Tensor &query, &key;
  const Tensor *mask;
  int64_t heads, rows, depth, groups, keys, diagonal;
  double scale;
  bool causal, zeroMaskedRows;
  int64_t levels; ///< columns of the mask in front of the keys'
  SmallVector<int64_t> maskStrides;
};

struct Attention : EvaluateModel<Attention, nn::AttentionOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto attention = cast<nn::AttentionOp>(op);
    Tensor result = makeResult(op), logSumExp = makeResult(op, 1);
    Rows rows(attention, operands,
              attention.getMask() ? &operands[3] : nullptr);
    int64_t width = operands[2].getDimSize(3);
    std::vector<double> weights;
    for (int64_t line = 0; line < rows.count(); ++line) {
      if (!rows.getWeights(line, weights, logSumExp.mutableFloats()[line]))
        continue; // the row stays zero
      const double *v =
          operands[2].floats().data() + rows.groupOf(line) * rows.keys * width;
      double *out = result.mutableFloats().data() + line * width;
      // Keys of weight 0 count as well: 0 · NaN is NaN, as in a product.
      for (int64_t t = 0; t < rows.keys; ++t)
        for (int64_t e = 0; e < width; ++e)
          out[e] += weights[t] * v[t * width + e];
    }
    results.append({std::move(result), std::move(logSumExp)});
    return success();
  }
};

struct AttentionGrad : EvaluateModel<AttentionGrad, nn::AttentionGradOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto grad = cast<nn::AttentionGradOp>(op);
    Tensor dQuery = makeResult(op, 0), dKey = makeResult(op, 1),
           dValue = makeResult(op, 2);
    enum { Query, Key, Value, Output, LogSumExp, Gradient, Next };
    const Tensor *ofLogSumExp =
        grad.getLogSumExpGradient() ? &operands[Next] : nullptr;
    Rows rows(grad, operands, grad.getMask() ? &operands.back() : nullptr);
    int64_t width = operands[Value].getDimSize(3), depth = rows.depth;
    std::vector<double> weights;
    for (int64_t line = 0; line < rows.count(); ++line) {
      if (!rows.getWeightsAgain(line, operands[LogSumExp].floats()[line],
                                weights))
        continue; // zeros depend on nothing
      int64_t first = rows.groupOf(line) * rows.keys;
      const double *out = operands[Gradient].floats().data() + line * width;
      const double *output = operands[Output].floats().data() + line * width;
      const double *q = rows.query.floats().data() + line * depth;
      // What each score's slope is beside its own: the same for the whole row.
      double common = ofLogSumExp ? ofLogSumExp->floats()[line] : 0;
      for (int64_t e = 0; e < width; ++e)
        common -= out[e] * output[e];
      for (int64_t t = 0; t < rows.keys; ++t) {
        const double *v = operands[Value].floats().data() + (first + t) * width;
        double slope = common;
        for (int64_t e = 0; e < width; ++e)
          slope += out[e] * v[e];
        slope *= rows.scale * weights[t];
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
