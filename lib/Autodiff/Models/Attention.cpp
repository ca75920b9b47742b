// The gradient of attention: an op of its own, which computes the probabilities
// again from the log-sum-exp; a mask that is computed with parameters gets its
// gradient from the products and the softmax written out.

#include "Group.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;
using nn::ComparePredicate;

namespace {
/// With P the probabilities, S the scaled, masked scores and L their
/// log-sum-exp: dV = Pᵀ dO, dP = dO Vᵀ, dS = P (dP - sum(dP P) + dL). The query
/// heads that share a key head are rows of one product, so that it sums over
/// them.
struct Attention
    : DifferentiableOpInterface::ExternalModel<Attention, nn::AttentionOp> {
  LogicalResult buildVjp(Operation *op, OpBuilder &builder,
                         ValueRange gradients, ArrayRef<bool> wanted,
                         MutableArrayRef<Value> operandGradients) const {
    auto attention = cast<nn::AttentionOp>(op);
    NNBuilder build{builder, gradientLoc(op)};
    Value gradient = gradients[0], ofLogSumExp = gradients[1];
    if (!gradient) // the log-sum-exp alone is read
      gradient = build.splat(0, attention.getResult());
    SmallVector<Value> all;
    if (wanted.size() > 3 && wanted[3])
      writeOut(attention, build, gradient, ofLogSumExp, all);
    else
      llvm::append_range(
          all,
          nn::AttentionGradOp::create(
              builder, build.loc, attention.getQuery(), attention.getKey(),
              attention.getValue(), attention.getResult(),
              attention.getLogSumExp(), gradient, ofLogSumExp,
              attention.getMask(), attention.getScaleAttr(),
              attention.getCausalAttr(), attention.getZeroMaskedRowsAttr(),
              attention.getRowOffsetAttr(), attention.getColumnOffsetAttr(),
              attention.getRowStepsAttr(), attention.getColumnStepsAttr(),
              attention.getTurnAttr(), attention.getStrideAttr())
              .getResults());
    for (auto [index, gradient] : llvm::enumerate(all))
      if (wanted[index])
        operandGradients[index] = gradient;
    return success();
  }

  static void writeOut(nn::AttentionOp op, const NNBuilder &e, Value g,
                       Value ofLogSumExp, SmallVectorImpl<Value> &out) {
    Value query = op.getQuery(), key = op.getKey(), value = op.getValue();
    double scale = op.getScale().convertToDouble();
    ArrayRef<int64_t> q = typeOf(query).getShape();
    int64_t groups = typeOf(key).getDimSize(1);
    int64_t keys = typeOf(key).getDimSize(2);
    int64_t rows = q[1] / groups * q[2];
    SmallVector<int64_t> full = {q[0], q[1], q[2], keys};
    auto group = [&](Value v) {
      return e.reshape(v, {q[0], groups, rows, typeOf(v).getShape().back()});
    };

    Value rowsOfQuery = group(query), rowsOfG = group(g);
    Value scores = e.scale(
        e.reshape(e.matmul(rowsOfQuery, key, false, true), full), scale);
    Value hidden = e.splat(-INFINITY, scores);
    Value mask = op.getMask();
    if (mask && isFloat(mask))
      scores = e.add(scores, e.cast(e.broadcast(mask, full),
                                    typeOf(scores).getElementType()));
    else if (mask)
      scores = e.select(e.broadcast(mask, full), scores, hidden);
    if (op.getCausal()) {
      Value last = e.iota(full, 2);
      auto shift = RankedTensorType::get(full, typeOf(last).getElementType());
      last = e.add(last, e.make<nn::ConstantOp>(
                             DenseElementsAttr::get(shift, op.getDiagonal())));
      scores = e.select(e.compare(ComparePredicate::le, e.iota(full, 3), last),
                        scores, hidden);
    }
    Value p = e.make<nn::SoftmaxOp>(scores, 3, false);
    if (op.getZeroMaskedRows()) {
      Value most = e.make<nn::ReduceOp>(nn::ReductionKind::max, scores,
                                        ArrayRef<int64_t>{3}, /*first=*/false);
      Value nothing =
          e.compare(ComparePredicate::eq, e.expand(most, 3, full), hidden);
      p = e.select(nothing, e.splat(0, p), p);
    }

    Value dP = e.reshape(e.matmul(rowsOfG, value, false, true), full);
    Value total = e.expand(e.sum(e.mul(dP, p), 3), 3, full);
    Value slope = e.sub(dP, total);
    if (ofLogSumExp)
      slope = e.add(slope, e.cast(e.expand(ofLogSumExp, 3, full),
                                  typeOf(slope).getElementType()));
    Value dS = e.mul(p, slope);
    Value scaled = group(e.scale(dS, scale));
    out.push_back(e.reshape(e.matmul(scaled, key), q));
    out.push_back(e.matmul(scaled, rowsOfQuery, true, false));
    out.push_back(e.matmul(group(p), rowsOfG, true, false));
    if (mask)
      out.push_back(isFloat(mask) ? e.cast(e.sumTo(dS, typeOf(mask).getShape()),
                                           typeOf(mask).getElementType())
                                  : Value());
  }
};
} // namespace

void autodiff::attachAttentionModels(MLIRContext *context) {
  nn::AttentionOp::attachInterface<Attention>(*context);
}
