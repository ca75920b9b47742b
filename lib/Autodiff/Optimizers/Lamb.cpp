// LAMB (You et al., arXiv:1904.00962, algorithm 2).

#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class Lamb : public Optimizer {
public:
  explicit Lamb(const Hyperparameters &values) : eps(values.get("eps")) {}

  SmallVector<StateSpec> getStates(RankedTensorType type, bool) const override {
    return {{"exp_avg", type}, {"exp_avg_sq", type}};
  }

  void begin(const NNBuilder &build, const GroupScalars &group) override {
    lr = group.lr;
    beta1 = Share(build, group.get("beta1"));
    beta2 = Share(build, group.get("beta2"));
    weightDecay = group.get("weight_decay");
    correction1 = biasCorrection(build, beta1.kept, group.step);
    correction2 = biasCorrection(build, beta2.kept, group.step);
  }

  Updated update(const NNBuilder &build,
                 const ParameterValues &values) const override {
    Value gradient = values.gradient, parameter = values.parameter;
    auto [mean, square] =
        buildMoments(build, values.states, gradient, beta1, beta2);
    Value root =
        build.sqrt(build.div(square, spread(build, correction2, square)));
    Value direction =
        build.div(build.div(mean, spread(build, correction1, mean)),
                  build.add(root, build.splat(eps, root)));
    if (!weightDecay.isZero())
      direction = build.add(direction, scale(build, parameter, weightDecay));
    Value ofParameter =
        build.sqrt(buildSquares(build, parameter, values.isStack));
    Value ofDirection =
        build.sqrt(buildSquares(build, direction, values.isStack));
    Value trust = buildTrust(build, ofParameter, ofDirection, ofDirection);
    Value rate = build.mul(trust, spread(build, lr, trust));
    Value move = build.mul(direction, repeat(build, rate, direction));
    return {build.sub(parameter, move), {mean, square}};
  }

private:
  double eps;
  Share beta1, beta2;
  Scalar weightDecay;
  Value lr, correction1, correction2;
};
} // namespace

std::unique_ptr<Optimizer> autodiff::makeLamb(const Hyperparameters &values) {
  return std::make_unique<Lamb>(values);
}
