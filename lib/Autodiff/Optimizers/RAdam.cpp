// torch.optim.RAdam (Liu et al., arXiv:1908.03265).

#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class RAdam : public Optimizer {
public:
  explicit RAdam(const Hyperparameters &values)
      : beta2(values.get("beta2")), eps(values.get("eps")),
        decoupled(values.isSet("decoupled_weight_decay")) {}

  SmallVector<StateSpec> getStates(RankedTensorType type, bool) const override {
    return {{"exp_avg", type}, {"exp_avg_sq", type}};
  }

  void begin(const NNBuilder &build, const GroupScalars &group) override {
    beta1Share = Share(build, group.get("beta1"));
    beta2Share = Share(build, beta2);
    size =
        build.div(group.lr, biasCorrection(build, beta1Share.kept, group.step));
    // The length of the approximated simple moving average.
    Value correction = biasCorrection(build, beta2, group.step);
    double most = 2 / (1 - beta2) - 1;
    Value power = build.sub(build.f64(1), correction);
    Value length = build.sub(
        build.f64(most),
        build.div(build.mul(build.mul(build.f64(2), group.step), power),
                  correction));
    isLong = build.compare(nn::ComparePredicate::gt, length, build.f64(5));
    auto less = [&](double number) {
      return build.sub(length, build.f64(number));
    };
    Value above = build.mul(build.mul(less(4), less(2)), build.f64(most));
    Value below = build.mul(build.f64((most - 4) * (most - 2)), length);
    // Of what is too short the root is of a negative number, and not taken.
    Value square = build.select(isLong, build.div(above, below), build.f64(0));
    rectification = build.mul(build.sqrt(square), build.sqrt(correction));
    if (decoupled)
      keep = buildKeep(build, group);
    else
      addedDecay = group.get("weight_decay");
  }

  Updated update(const NNBuilder &build,
                 const ParameterValues &values) const override {
    Value gradient = addDecay(build, addedDecay, values);
    Value parameter = decay(build, keep, values.parameter);
    auto [mean, square] =
        buildMoments(build, values.states, gradient, beta1Share, beta2Share);
    Value adapted =
        build.div(spread(build, rectification, square),
                  build.add(build.sqrt(square), build.splat(eps, square)));
    ArrayRef<int64_t> shape = typeOf(square).getShape();
    Value factor = build.select(build.spread(isLong, shape), adapted,
                                build.splat(1, square));
    Value move = build.mul(build.mul(mean, spread(build, size, mean)), factor);
    return {build.sub(parameter, move), {mean, square}};
  }

private:
  double beta2, eps;
  bool decoupled;
  Share beta1Share, beta2Share;
  Scalar addedDecay;
  Value size, isLong, rectification, keep;
};
} // namespace

std::unique_ptr<Optimizer> autodiff::makeRAdam(const Hyperparameters &values) {
  return std::make_unique<RAdam>(values);
}
