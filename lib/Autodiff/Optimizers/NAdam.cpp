// torch.optim.NAdam (Dozat, 2016, Incorporating Nesterov Momentum into Adam).

#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class NAdam : public Optimizer {
public:
  explicit NAdam(const Hyperparameters &values)
      : eps(values.get("eps")), momentumDecay(values.get("momentum_decay")),
        decoupled(values.isSet("decoupled_weight_decay")) {}

  /// The product of all momenta so far is one number: a parameter has its own,
  /// as in PyTorch, so that checkpoints are alike.
  SmallVector<StateSpec> getStates(RankedTensorType type,
                                   bool isStack) const override {
    SmallVector<int64_t> shape;
    if (isStack)
      shape.push_back(type.getDimSize(0));
    return {{"exp_avg", type},
            {"exp_avg_sq", type},
            {"mu_product",
             RankedTensorType::get(shape, Float64Type::get(type.getContext())),
             1}};
  }

  void begin(const NNBuilder &build, const GroupScalars &group) override {
    lr = group.lr;
    beta1 = Share(build, group.get("beta1"));
    beta2 = Share(build, group.get("beta2"));
    correction = biasCorrection(build, beta2.kept, group.step);
    mu = momentumAt(build, group.step);
    nextMu = momentumAt(build, build.add(group.step, build.f64(1)));
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
        buildMoments(build, values.states, gradient, beta1, beta2);
    Value old = values.states[2];
    Value product = build.mul(old, spread(build, mu, old));
    Value nextProduct = build.mul(product, spread(build, nextMu, old));
    auto share = [&](Value rate, Value done) {
      Value left = build.sub(build.splat(1, old), done);
      Value number = build.div(spread(build, rate, old), left);
      Type element = typeOf(parameter).getElementType();
      return repeat(build, build.cast(number, element), parameter);
    };
    Value ofGradient =
        share(build.mul(lr, build.sub(build.f64(1), mu)), product);
    Value ofMean = share(build.mul(lr, nextMu), nextProduct);
    Value denominator = build.add(
        build.sqrt(build.div(square, spread(build, correction, square))),
        build.splat(eps, square));
    Value move =
        build.add(build.mul(build.div(gradient, denominator), ofGradient),
                  build.mul(build.div(mean, denominator), ofMean));
    return {build.sub(parameter, move), {mean, square, product}};
  }

private:
  /// beta1 · (1 - 0.96^(step · momentum_decay) / 2)
  Value momentumAt(const NNBuilder &build, Value step) const {
    Value power = build.make<nn::PowOp>(
        build.f64(0.96), build.mul(step, build.f64(momentumDecay)));
    return build.mul(beta1.kept.in(build),
                     build.sub(build.f64(1), build.mul(build.f64(0.5), power)));
  }

  double eps, momentumDecay;
  bool decoupled;
  Share beta1, beta2;
  Scalar addedDecay;
  Value lr, correction, mu, nextMu, keep;
};
} // namespace

std::unique_ptr<Optimizer> autodiff::makeNAdam(const Hyperparameters &values) {
  return std::make_unique<NAdam>(values);
}
