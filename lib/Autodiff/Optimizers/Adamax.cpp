// torch.optim.Adamax (Kingma and Ba, arXiv:1412.6980, section 7).

#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class Adamax : public Optimizer {
public:
  explicit Adamax(const Hyperparameters &values)
      : beta2(values.get("beta2")), eps(values.get("eps")) {}

  SmallVector<StateSpec> getStates(RankedTensorType type, bool) const override {
    return {{"exp_avg", type}, {"exp_inf", type}};
  }

  void begin(const NNBuilder &build, const GroupScalars &group) override {
    beta1 = Share(build, group.get("beta1"));
    weightDecay = group.get("weight_decay");
    size = build.div(group.lr, biasCorrection(build, beta1.kept, group.step));
  }

  Updated update(const NNBuilder &build,
                 const ParameterValues &values) const override {
    Value gradient = addDecay(build, weightDecay, values);
    Value mean = lerp(build, values.states[0], gradient, beta1.rest);
    Value largest = build.make<nn::MaxOp>(
        build.scale(values.states[1], beta2),
        build.add(build.make<nn::AbsOp>(gradient), build.splat(eps, gradient)));
    Value move =
        build.mul(build.div(mean, largest), spread(build, size, gradient));
    return {build.sub(values.parameter, move), {mean, largest}};
  }

private:
  double beta2, eps;
  Share beta1;
  Scalar weightDecay;
  Value size; ///< lr / (1 - beta1^t)
};
} // namespace

std::unique_ptr<Optimizer> autodiff::makeAdamax(const Hyperparameters &values) {
  return std::make_unique<Adamax>(values);
}
