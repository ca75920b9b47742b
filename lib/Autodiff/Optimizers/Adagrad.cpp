// torch.optim.Adagrad (Duchi, Hazan and Singer, 2011).

#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class Adagrad : public Optimizer {
public:
  explicit Adagrad(const Hyperparameters &values)
      : lrDecay(values.get("lr_decay")), eps(values.get("eps")),
        first(values.get("initial_accumulator_value")) {}

  SmallVector<StateSpec> getStates(RankedTensorType type, bool) const override {
    return {{"sum", type, first}};
  }

  void begin(const NNBuilder &build, const GroupScalars &group) override {
    weightDecay = group.get("weight_decay");
    Value finished = build.sub(group.step, build.f64(1));
    rate =
        build.div(group.lr, build.add(build.f64(1),
                                      build.mul(finished, build.f64(lrDecay))));
  }

  Updated update(const NNBuilder &build,
                 const ParameterValues &values) const override {
    Value gradient = addDecay(build, weightDecay, values);
    Value sum = build.add(values.states[0], build.mul(gradient, gradient));
    Value denominator = build.add(build.sqrt(sum), build.splat(eps, sum));
    Value move = build.mul(build.div(gradient, denominator),
                           spread(build, rate, gradient));
    return {build.sub(values.parameter, move), {sum}};
  }

private:
  double lrDecay, eps, first;
  Scalar weightDecay;
  Value rate; ///< lr / (1 + finished steps · lr_decay)
};
} // namespace

std::unique_ptr<Optimizer>
autodiff::makeAdagrad(const Hyperparameters &values) {
  return std::make_unique<Adagrad>(values);
}
