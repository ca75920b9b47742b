// Schedule-free AdamW (Defazio et al., 2024, The Road Less Scheduled,
// arXiv:2405.15682; package `schedulefree`, class AdamWScheduleFree).
//
// Three points of each parameter: z, which AdamW without its first moment
// moves; x, the average of all z by weights that the rates give; and y = x ·
// beta1 + z · (1 - beta1), at which gradients are taken. The parameter is y.
// The package keeps y and z and makes x of them where it evaluates; here x is a
// state, since evaluations and saved weights read it.

#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class ScheduleFreeAdamW : public Optimizer {
public:
  explicit ScheduleFreeAdamW(const Hyperparameters &values)
      : eps(values.get("eps")), warmupSteps(values.get("warmup_steps")),
        stepPower(values.get("r")), ratePower(values.get("weight_lr_power")) {}

  bool keepsAverage() const override { return true; }

  /// Sums are one number each: a parameter has its own, so that groups may have
  /// other rates, and those of a stack may be frozen apart.
  SmallVector<StateSpec> getStates(RankedTensorType type,
                                   bool isStack) const override {
    SmallVector<int64_t> shape;
    if (isStack)
      shape.push_back(type.getDimSize(0));
    auto number =
        RankedTensorType::get(shape, Float64Type::get(type.getContext()));
    return {{"z", type},
            {"exp_avg_sq", type},
            {"lr_max", number},
            {"weight_sum", number}};
  }

  void begin(const NNBuilder &build, const GroupScalars &group) override {
    lr = group.lr;
    if (warmupSteps > 0)
      lr = build.mul(
          lr, build.make<nn::MinOp>(
                  build.f64(1), build.div(group.step, build.f64(warmupSteps))));
    beta1 = group.get("beta1");
    beta2 = Share(build, group.get("beta2"));
    weightDecay = group.get("weight_decay");
    correction = biasCorrection(build, beta2.kept, group.step);
    if (stepPower != 0)
      ofStep = build.make<nn::PowOp>(group.step, build.f64(stepPower));
    isFirst = build.compare(nn::ComparePredicate::lt, group.step, build.f64(2));
  }

  Updated update(const NNBuilder &build,
                 const ParameterValues &values) const override {
    Value parameter = values.parameter;
    // All three begin where the run does, with other weights too.
    Value starts = build.spread(isFirst, typeOf(parameter).getShape());
    Value z = build.select(starts, parameter, values.states[0]);
    Value x = build.select(starts, parameter, values.average);

    Value oldMax = values.states[2];
    Value largest = build.make<nn::MaxOp>(oldMax, spread(build, lr, oldMax));
    Value weight =
        build.make<nn::PowOp>(largest, build.splat(ratePower, oldMax));
    if (ofStep)
      weight = build.mul(weight, spread(build, ofStep, oldMax));
    Value sum = build.add(values.states[3], weight);
    Value zero = build.splat(0, oldMax);
    Value share =
        build.select(build.compare(nn::ComparePredicate::lt, zero, sum),
                     build.div(weight, sum), zero);
    Type element = typeOf(parameter).getElementType();

    Value gradient = values.gradient;
    Value square =
        average(build, values.states[1], build.mul(gradient, gradient), beta2);
    Value denominator = build.add(
        build.sqrt(build.div(square, spread(build, correction, square))),
        build.splat(eps, square));
    Value move = build.div(gradient, denominator);
    if (!weightDecay.isZero())
      move = build.add(move, scale(build, parameter, weightDecay));
    Value newZ = build.sub(z, build.mul(move, spread(build, lr, move)));
    Value newX =
        build.add(x, build.mul(build.sub(newZ, x),
                               repeat(build, build.cast(share, element), x)));
    return {lerp(build, newZ, newX, beta1), {newZ, square, largest, sum}, newX};
  }

private:
  double eps, warmupSteps, stepPower, ratePower;
  Scalar beta1, weightDecay;
  Share beta2;
  Value lr, correction, ofStep, isFirst;
};
} // namespace

std::unique_ptr<Optimizer>
autodiff::makeScheduleFreeAdamW(const Hyperparameters &values) {
  return std::make_unique<ScheduleFreeAdamW>(values);
}
