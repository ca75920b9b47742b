// torch.optim.Adafactor (Shazeer and Stern, arXiv:1804.04235), whose second
// moments of matrices are an outer product of those of rows and columns.

#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class Adafactor : public Optimizer {
public:
  explicit Adafactor(const Hyperparameters &values)
      : beta2Decay(values.get("beta2_decay")), eps1(values.get("eps1")),
        eps2(values.get("eps2")), d(values.get("d")) {}

  SmallVector<StateSpec> getStates(RankedTensorType type,
                                   bool isStack) const override {
    int64_t rank = type.getRank();
    if (rank - isStack < 2)
      return {{"variance", type}};
    SmallVector<int64_t> rows(type.getShape()), columns(type.getShape());
    rows[rank - 1] = 1;
    columns[rank - 2] = 1;
    return {{"row_var", type.clone(rows)}, {"col_var", type.clone(columns)}};
  }

  void begin(const NNBuilder &build, const GroupScalars &group) override {
    Value root = build.sqrt(group.step);
    rate = build.make<nn::MinOp>(group.lr, build.div(build.f64(1), root));
    weight = build.make<nn::PowOp>(group.step, build.f64(beta2Decay));
    keep = buildKeep(build, group);
  }

  Updated update(const NNBuilder &build,
                 const ParameterValues &values) const override {
    Value gradient = values.gradient;
    RankedTensorType type = typeOf(gradient);
    double smallest =
        eps1 != 0 ? eps1 : (type.getElementType().isF64() ? 0x1p-52 : 0x1p-23);
    Value parameter = decay(build, keep, values.parameter);
    Updated updated;
    Value variance = buildVariance(build, values, smallest, updated.states);
    Value clamped = build.make<nn::MaxOp>(
        variance, build.splat(smallest * smallest, variance));
    Value direction = build.mul(build.make<nn::RsqrtOp>(clamped), gradient);
    Value rms = buildRms(build, direction, values.isStack);
    Value clip =
        build.make<nn::MaxOp>(build.splat(1, rms), build.scale(rms, 1 / d));
    // Relative to the size of the parameter, before its decay.
    Value size =
        build.make<nn::MaxOp>(buildRms(build, values.parameter, values.isStack),
                              build.splat(eps2, rms));
    Value factor = build.div(build.mul(size, spread(build, rate, size)), clip);
    updated.parameter = build.sub(
        parameter, build.mul(direction, repeat(build, factor, direction)));
    return updated;
  }

private:
  static Value buildRms(const NNBuilder &build, Value value, bool isStack) {
    RankedTensorType type = typeOf(value);
    int64_t count = type.getNumElements() / (isStack ? type.getDimSize(0) : 1);
    return build.sqrt(
        build.scale(buildSquares(build, value, isStack), 1. / count));
  }

  /// The mean of squares along `dim`, which stays, of size 1.
  static Value buildMean(const NNBuilder &build, Value value, int64_t dim) {
    RankedTensorType type = typeOf(value);
    SmallVector<int64_t> shape(type.getShape());
    double count = shape[dim];
    shape[dim] = 1;
    return build.scale(build.reshape(build.sum(value, {dim}), shape),
                       1 / count);
  }

  Value moveTo(const NNBuilder &build, Value old, Value value) const {
    return build.add(
        old, build.mul(build.sub(value, old), spread(build, weight, old)));
  }

  Value buildVariance(const NNBuilder &build, const ParameterValues &values,
                      double smallest, SmallVector<Value> &states) const {
    Value squares = build.mul(values.gradient, values.gradient);
    RankedTensorType type = typeOf(squares);
    int64_t rank = type.getRank();
    if (values.states.size() == 1) {
      states.push_back(moveTo(build, values.states[0], squares));
      return states.back();
    }
    Value rows =
        moveTo(build, values.states[0], buildMean(build, squares, rank - 1));
    Value columns =
        moveTo(build, values.states[1], buildMean(build, squares, rank - 2));
    states = {rows, columns};
    Value mean = buildMean(build, rows, rank - 2);
    Value shares = build.div(
        columns,
        build.make<nn::MaxOp>(build.broadcast(mean, typeOf(columns).getShape()),
                              build.splat(smallest, columns)));
    return build.mul(build.broadcast(rows, type.getShape()),
                     build.broadcast(shares, type.getShape()));
  }

  double beta2Decay, eps1, eps2, d;
  Value rate, weight, keep;
};
} // namespace

std::unique_ptr<Optimizer>
autodiff::makeAdafactor(const Hyperparameters &values) {
  return std::make_unique<Adafactor>(values);
}
