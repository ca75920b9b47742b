// torch.optim.Adam and AdamW, with AMSGrad (their single-tensor formulas;
// Kingma and Ba, arXiv:1412.6980; Loshchilov and Hutter, arXiv:1711.05101;
// Reddi, Kale and Kumar, arXiv:1904.09237).

#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class Adam : public Optimizer {
public:
  Adam(const Hyperparameters &values, bool decoupled)
      : eps(values.get("eps")), decoupled(decoupled),
        amsgrad(values.isSet("amsgrad")) {}

  SmallVector<StateSpec> getStates(RankedTensorType type, bool) const override {
    SmallVector<StateSpec> states = {{"exp_avg", type}, {"exp_avg_sq", type}};
    if (amsgrad)
      states.push_back({"max_exp_avg_sq", type});
    return states;
  }

  void begin(const NNBuilder &build, const GroupScalars &group) override {
    beta1 = Share(build, group.get("beta1"));
    beta2 = Share(build, group.get("beta2"));
    size = build.div(group.lr, biasCorrection(build, beta1.kept, group.step));
    sqrtCorrection = build.sqrt(biasCorrection(build, beta2.kept, group.step));
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
    Updated updated{nullptr, {mean, square}};
    if (amsgrad) {
      square = build.make<nn::MaxOp>(values.states[2], square);
      updated.states.push_back(square);
    }
    Value denominator = build.add(
        build.div(build.sqrt(square), spread(build, sqrtCorrection, parameter)),
        build.splat(eps, parameter));
    Value move =
        build.mul(build.div(mean, denominator), spread(build, size, parameter));
    updated.parameter = build.sub(parameter, move);
    return updated;
  }

private:
  double eps;
  bool decoupled, amsgrad;
  Share beta1, beta2;
  Scalar addedDecay;
  /// lr / (1 - beta1^t), sqrt(1 - beta2^t), 1 - lr · weight_decay.
  Value size, sqrtCorrection, keep;
};
} // namespace

std::unique_ptr<Optimizer> autodiff::makeAdam(const Hyperparameters &values) {
  return std::make_unique<Adam>(values, /*decoupled=*/false);
}

std::unique_ptr<Optimizer> autodiff::makeAdamW(const Hyperparameters &values) {
  return std::make_unique<Adam>(values, /*decoupled=*/true);
}
