// torch.optim.SGD: momentum, dampened or Nesterov's.

#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class Sgd : public Optimizer {
public:
  explicit Sgd(const Hyperparameters &values)
      : hasMomentum(values.isSet("momentum")),
        dampening(values.get("dampening")), nesterov(values.isSet("nesterov")) {
  }

  SmallVector<StateSpec> getStates(RankedTensorType type, bool) const override {
    if (!hasMomentum)
      return {};
    return {{"momentum_buffer", type}};
  }

  void begin(const NNBuilder &build, const GroupScalars &group) override {
    lr = group.lr;
    momentum = group.get("momentum");
    weightDecay = group.get("weight_decay");
    if (!hasMomentum || dampening == 0)
      return;
    // PyTorch's first buffer is the gradient, which is not dampened.
    Value isFirst =
        build.compare(nn::ComparePredicate::lt, group.step, build.f64(2));
    share = build.select(isFirst, build.f64(1), build.f64(1 - dampening));
  }

  Updated update(const NNBuilder &build,
                 const ParameterValues &values) const override {
    Updated updated;
    Value direction = addDecay(build, weightDecay, values);
    if (!values.states.empty()) {
      Value gradient = direction;
      Value kept = scale(build, values.states[0], momentum);
      if (share)
        direction = build.mul(direction, spread(build, share, direction));
      direction = build.add(kept, direction);
      updated.states.push_back(direction);
      if (nesterov)
        direction = build.add(gradient, scale(build, direction, momentum));
    }
    updated.parameter =
        build.sub(values.parameter,
                  build.mul(direction, spread(build, lr, values.parameter)));
    return updated;
  }

private:
  bool hasMomentum;
  double dampening;
  bool nesterov;
  Scalar momentum, weightDecay;
  Value lr;
  Value share; ///< of the gradient in the buffer; null for 1
};
} // namespace

std::unique_ptr<Optimizer> autodiff::makeSgd(const Hyperparameters &values) {
  return std::make_unique<Sgd>(values);
}
