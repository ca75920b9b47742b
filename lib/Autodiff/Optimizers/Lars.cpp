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
      : eps(values.get("eps")),
        trustCoefficient(values.get("trust_coefficient")) {}

  SmallVector<StateSpec> getStates(RankedTensorType type, bool) const override {
    return {{"momentum_buffer", type}};
  }

  void begin(const NNBuilder &, const GroupScalars &group) override {
    lr = group.lr;
    momentum = group.get("momentum");
    weightDecay = group.get("weight_decay");
  }

  Updated update(const NNBuilder &build,
                 const ParameterValues &values) const override {
    Value ofParameter =
        build.sqrt(buildSquares(build, values.parameter, values.isStack));
    Value ofGradient =
        build.sqrt(buildSquares(build, values.gradient, values.isStack));
    Value below =
        build.add(build.add(ofGradient, scale(build, ofParameter, weightDecay)),
                  build.splat(eps, ofGradient));
    Value trust = buildTrust(build, build.scale(ofParameter, trustCoefficient),
                             below, ofGradient);
    Value rate = build.mul(trust, spread(build, lr, trust));
    Value direction = addDecay(build, weightDecay, values);
    Value moved =
        build.add(scale(build, values.states[0], momentum),
                  build.mul(direction, repeat(build, rate, direction)));
    return {build.sub(values.parameter, moved), {moved}};
  }

private:
  double eps, trustCoefficient;
  Scalar momentum, weightDecay;
  Value lr;
};
} // namespace

std::unique_ptr<Optimizer> autodiff::makeLars(const Hyperparameters &values) {
  return std::make_unique<Lars>(values);
}
