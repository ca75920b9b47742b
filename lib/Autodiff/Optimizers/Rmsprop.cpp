// torch.optim.RMSprop (Hinton's lecture; centered: Graves, arXiv:1308.0850).

#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class Rmsprop : public Optimizer {
public:
  explicit Rmsprop(const Hyperparameters &values)
      : alpha(values.get("alpha")), eps(values.get("eps")),
        hasMomentum(values.isSet("momentum")),
        centered(values.isSet("centered")) {}

  SmallVector<StateSpec> getStates(RankedTensorType type, bool) const override {
    SmallVector<StateSpec> states = {{"square_avg", type}};
    if (hasMomentum)
      states.push_back({"momentum_buffer", type});
    if (centered)
      states.push_back({"grad_avg", type});
    return states;
  }

  void begin(const NNBuilder &build, const GroupScalars &group) override {
    lr = group.lr;
    kept = Share(build, alpha);
    momentum = group.get("momentum");
    weightDecay = group.get("weight_decay");
  }

  Updated update(const NNBuilder &build,
                 const ParameterValues &values) const override {
    Value gradient = addDecay(build, weightDecay, values);
    Value square =
        average(build, values.states[0], build.mul(gradient, gradient), kept);
    Updated updated{nullptr, {square}};
    Value mean;
    if (centered) {
      mean = lerp(build, values.states.back(), gradient, kept.rest);
      square = build.sub(square, build.mul(mean, mean));
    }
    Value move = build.div(
        gradient, build.add(build.sqrt(square), build.splat(eps, square)));
    if (hasMomentum) {
      move = build.add(scale(build, values.states[1], momentum), move);
      updated.states.push_back(move);
    }
    if (centered)
      updated.states.push_back(mean);
    updated.parameter =
        build.sub(values.parameter, build.mul(move, spread(build, lr, move)));
    return updated;
  }

private:
  double alpha, eps;
  bool hasMomentum, centered;
  Share kept;
  Scalar momentum, weightDecay;
  Value lr;
};
} // namespace

std::unique_ptr<Optimizer>
autodiff::makeRmsprop(const Hyperparameters &values) {
  return std::make_unique<Rmsprop>(values);
}
