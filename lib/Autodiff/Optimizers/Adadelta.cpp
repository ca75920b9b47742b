// torch.optim.Adadelta (Zeiler, arXiv:1212.5701).

#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class Adadelta : public Optimizer {
public:
  explicit Adadelta(const Hyperparameters &values)
      : rho(values.get("rho")), eps(values.get("eps")) {}

  SmallVector<StateSpec> getStates(RankedTensorType type, bool) const override {
    return {{"square_avg", type}, {"acc_delta", type}};
  }

  void begin(const NNBuilder &build, const GroupScalars &group) override {
    lr = group.lr;
    kept = Share(build, rho);
    weightDecay = group.get("weight_decay");
  }

  Updated update(const NNBuilder &build,
                 const ParameterValues &values) const override {
    Value gradient = addDecay(build, weightDecay, values);
    Value square =
        average(build, values.states[0], build.mul(gradient, gradient), kept);
    auto root = [&](Value value) {
      return build.sqrt(build.add(value, build.splat(eps, value)));
    };
    Value delta =
        build.mul(build.div(root(values.states[1]), root(square)), gradient);
    Value moved =
        average(build, values.states[1], build.mul(delta, delta), kept);
    Value move = build.mul(delta, spread(build, lr, delta));
    return {build.sub(values.parameter, move), {square, moved}};
  }

private:
  double rho, eps;
  Scalar weightDecay;
  Share kept;
  Value lr;
};
} // namespace

std::unique_ptr<Optimizer>
autodiff::makeAdadelta(const Hyperparameters &values) {
  return std::make_unique<Adadelta>(values);
}
