// LARS (You, Gitman and Ginsburg, arXiv:1708.03888, algorithm 1).

#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class Lars : public Optimizer {
public:
  explicit Lars(const Hyperparameters &values)
      : momentum(values.get("momentum")), eps(values.get("eps")),
        trustCoefficient(values.get("trust_coefficient")),
        weightDecay(values.get("weight_decay")) {}

  SmallVector<StateSpec> getStates(RankedTensorType type, bool) const override {
    return {{"momentum_buffer", type}};
  }

  void begin(const NNBuilder &, const GroupScalars &group) override {
    lr = group.lr;
  }

  Updated update(const NNBuilder &build,
                 const ParameterValues &values) const override {
    Value ofParameter =
        build.sqrt(buildSquares(build, values.parameter, values.isStack));
    Value ofGradient =
        build.sqrt(buildSquares(build, values.gradient, values.isStack));
    Value below =
        build.add(build.add(ofGradient, build.scale(ofParameter, weightDecay)),
                  build.splat(eps, ofGradient));
    Value trust = buildTrust(build, build.scale(ofParameter, trustCoefficient),
                             below, ofGradient);
    Value rate = build.mul(trust, spread(build, lr, trust));
    Value direction = addDecay(build, weightDecay, values);
    Value moved =
        build.add(build.scale(values.states[0], momentum),
                  build.mul(direction, repeat(build, rate, direction)));
    return {build.sub(values.parameter, moved), {moved}};
  }

private:
  double momentum, eps, trustCoefficient, weightDecay;
  Value lr;
};
} // namespace

std::unique_ptr<Optimizer> autodiff::makeLars(const Hyperparameters &values) {
  return std::make_unique<Lars>(values);
}
