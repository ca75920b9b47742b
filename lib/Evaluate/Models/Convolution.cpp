// The meaning of convolutions: loops over every term of every sum.

#include "Group.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

namespace {
/// A convolution's three tensors: those of its input (x), weight (w) and result
/// (y), of up to three dimensions of space.
class Terms {
public:
  template <typename Op>
  Terms(Op op, RankedTensorType x, RankedTensorType w, RankedTensorType y) {
    size_t space = op.getSizes().size();
    bool hasGroups = x.getRank() == int64_t(space) + 3;
    batch = x.getDimSize(0);
    groups = hasGroups ? x.getDimSize(1) : 1;
    channels = x.getDimSize(1 + hasGroups);
    outChannels = y.getDimSize(1 + hasGroups);
    // Behind the op's own dimensions of space come those of one element.
    size_t lead = 2 + hasGroups;
    for (size_t dim = 0; dim < space; ++dim) {
      in[dim] = x.getDimSize(lead + dim);
      window[dim] = w.getDimSize(lead + dim);
      out[dim] = y.getDimSize(lead + dim);
      stride[dim] = op.getStrides()[dim];
      dilation[dim] = op.getDilations()[dim];
      low[dim] = op.getLow()[dim];
    }
  }

  /// Calls `fn` with the elements of x, w and y that each term is of.
  template <typename Fn> void forEach(Fn fn) const {
    int64_t ofX = in[0] * in[1] * in[2],
            ofW = window[0] * window[1] * window[2],
            ofY = out[0] * out[1] * out[2];
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t g = 0; g < groups; ++g)
        for (int64_t o = 0; o < outChannels; ++o)
          for (int64_t c = 0; c < channels; ++c) {
            int64_t x = ((n * groups + g) * channels + c) * ofX,
                    w = ((g * outChannels + o) * channels + c) * ofW,
                    y = ((n * groups + g) * outChannels + o) * ofY;
            forEachOfPlane(x, w, y, fn);
          }
  }

private:
  template <typename Fn>
  void forEachOfPlane(int64_t x, int64_t w, int64_t y, Fn fn) const {
    std::array<int64_t, 3> p, k, i;
    for (p[0] = 0; p[0] < out[0]; ++p[0])
      for (p[1] = 0; p[1] < out[1]; ++p[1])
        for (p[2] = 0; p[2] < out[2]; ++p[2])
          for (k[0] = 0; k[0] < window[0]; ++k[0])
            for (k[1] = 0; k[1] < window[1]; ++k[1])
              for (k[2] = 0; k[2] < window[2]; ++k[2]) {
                bool isInside = true;
                for (size_t dim = 0; dim < 3; ++dim) {
                  i[dim] =
                      p[dim] * stride[dim] + k[dim] * dilation[dim] - low[dim];
                  isInside &= i[dim] >= 0 && i[dim] < in[dim];
                }
                if (isInside)
                  fn(x + (i[0] * in[1] + i[1]) * in[2] + i[2],
                     w + (k[0] * window[1] + k[1]) * window[2] + k[2],
                     y + (p[0] * out[1] + p[1]) * out[2] + p[2]);
              }
  }

  int64_t batch, groups, channels, outChannels;
  std::array<int64_t, 3> in{1, 1, 1}, window{1, 1, 1}, out{1, 1, 1},
      stride{1, 1, 1}, dilation{1, 1, 1}, low{0, 0, 0};
};

struct Conv : EvaluateModel<Conv, nn::ConvOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto conv = cast<nn::ConvOp>(op);
    Tensor result = makeResult(op);
    const double *x = operands[0].floats().data(),
                 *w = operands[1].floats().data();
    double *y = result.mutableFloats().data();
    Terms(conv, conv.getLhs().getType(), conv.getRhs().getType(),
          conv.getType())
        .forEach([&](int64_t ofX, int64_t ofW, int64_t ofY) {
          y[ofY] += x[ofX] * w[ofW];
        });
    results.push_back(std::move(result));
    return success();
  }
};

struct ConvInputGrad : EvaluateModel<ConvInputGrad, nn::ConvInputGradOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto grad = cast<nn::ConvInputGradOp>(op);
    Tensor result = makeResult(op);
    const double *y = operands[0].floats().data(),
                 *w = operands[1].floats().data();
    double *x = result.mutableFloats().data();
    Terms(grad, grad.getType(), grad.getRhs().getType(),
          grad.getLhs().getType())
        .forEach([&](int64_t ofX, int64_t ofW, int64_t ofY) {
          x[ofX] += y[ofY] * w[ofW];
        });
    results.push_back(std::move(result));
    return success();
  }
};

struct ConvWeightGrad : EvaluateModel<ConvWeightGrad, nn::ConvWeightGradOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto grad = cast<nn::ConvWeightGradOp>(op);
    Tensor result = makeResult(op);
    const double *x = operands[0].floats().data(),
                 *y = operands[1].floats().data();
    double *w = result.mutableFloats().data();
    Terms(grad, grad.getLhs().getType(), grad.getType(),
          grad.getRhs().getType())
        .forEach([&](int64_t ofX, int64_t ofW, int64_t ofY) {
          w[ofW] += x[ofX] * y[ofY];
        });
    results.push_back(std::move(result));
    return success();
  }
};
} // namespace

void evaluate::attachConvolutionModels(MLIRContext *context) {
  nn::ConvOp::attachInterface<Conv>(*context);
  nn::ConvInputGradOp::attachInterface<ConvInputGrad>(*context);
  nn::ConvWeightGradOp::attachInterface<ConvWeightGrad>(*context);
}
