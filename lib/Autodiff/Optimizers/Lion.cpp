// Lion (Chen et al., arXiv:2302.06675, program 1).

#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class Lion : public Optimizer {
public:
  SmallVector<StateSpec> getStates(RankedTensorType type, bool) const override {
    return {{"exp_avg", type}};
  }

  void begin(const NNBuilder &build, const GroupScalars &group) override {
    lr = group.lr;
    beta1 = Share(build, group.get("beta1"));
    beta2 = Share(build, group.get("beta2"));
    keep = buildKeep(build, group);
  }

  Updated update(const NNBuilder &build,
                 const ParameterValues &values) const override {
    Value parameter = decay(build, keep, values.parameter);
    Value direction = average(build, values.states[0], values.gradient, beta1);
    Value move =
        build.mul(sign(build, direction), spread(build, lr, direction));
    return {build.sub(parameter, move),
            {average(build, values.states[0], values.gradient, beta2)}};
  }

private:
  /// -1, 0 or 1
  static Value sign(const NNBuilder &build, Value value) {
    Value zero = build.splat(0, value);
    auto choose = [&](nn::ComparePredicate predicate, double number,
                      Value other) {
      return build.select(build.compare(predicate, value, zero),
                          build.splat(number, value), other);
    };
    return choose(nn::ComparePredicate::gt, 1,
                  choose(nn::ComparePredicate::lt, -1, zero));
  }

  Share beta1, beta2;
  Value lr, keep;
};
} // namespace

std::unique_ptr<Optimizer> autodiff::makeLion(const Hyperparameters &) {
  return std::make_unique<Lion>();
}
