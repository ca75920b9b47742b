// torch.optim.Muon: momentum, made orthogonal by Newton and Schulz (Jordan et
// al., 2024, https://kellerjordan.github.io/posts/muon), of whole matrices.

#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class Muon : public Optimizer {
public:
  explicit Muon(const Hyperparameters &values)
      : steps(values.get("ns_steps")), nesterov(values.isSet("nesterov")),
        adjustment(Adjustment(int(values.get("adjust_lr_fn")))) {}

  SmallVector<StateSpec> getStates(RankedTensorType type, bool) const override {
    return {{"momentum_buffer", type}};
  }

  void begin(const NNBuilder &build, const GroupScalars &group) override {
    lr = group.lr;
    momentum = Share(build, group.get("momentum"));
    keep = buildKeep(build, group);
  }

  Updated update(const NNBuilder &build,
                 const ParameterValues &values) const override {
    Value parameter = decay(build, keep, values.parameter);
    Value mean = lerp(build, values.states[0], values.gradient, momentum.rest);
    Value direction =
        nesterov ? lerp(build, values.gradient, mean, momentum.kept) : mean;
    direction = orthogonalise(build, direction, values.isStack);
    ArrayRef<int64_t> sizes = typeOf(direction).getShape().take_back(2);
    Value rate = build.mul(lr, build.f64(getFactor(sizes[0], sizes[1])));
    Value move = build.mul(direction, spread(build, rate, direction));
    return {build.sub(parameter, move), {mean}};
  }

private:
  /// In the order of the optimizer's table.
  enum class Adjustment { Original, MatchRmsAdamW, Spectral, UnitRmsNorm };

  /// Of the rate: torch.optim.Muon's `adjust_lr_fn`, and the scale modes of
  /// Megatron-LM (emerging_optimizers), whose `shape_scaling` is the first.
  double getFactor(double rows, double columns) const {
    switch (adjustment) {
    case Adjustment::Original:
      return std::sqrt(std::max(1., rows / columns));
    case Adjustment::MatchRmsAdamW:
      return 0.2 * std::sqrt(std::max(rows, columns));
    case Adjustment::Spectral:
      return std::sqrt(std::max(rows, columns));
    case Adjustment::UnitRmsNorm:
      return std::sqrt(rows / columns);
    }
    llvm_unreachable("unknown adjustment");
  }

  /// Singular values near 1. In bfloat16, as the original: its products take
  /// half as long, and a direction needs no more digits; but in float64, which
  /// is for comparing numbers, in float64.
  Value orthogonalise(const NNBuilder &build, Value x, bool isStack) const {
    // Published with the method.
    constexpr double coefficients[] = {3.4445, -4.7750, 2.0315}, eps = 1e-7;
    Value norm = build.sqrt(buildSquares(build, x, isStack));
    norm = build.make<nn::MaxOp>(norm, build.splat(eps, norm));
    x = build.div(x, repeat(build, norm, x));
    Type type = typeOf(x).getElementType();
    if (!type.isF64())
      x = build.cast(x, build.builder.getBF16Type());
    x = build.make<nn::NewtonSchulzOp>(x, steps, coefficients);
    return build.cast(x, type);
  }

  Share momentum;
  int steps;
  bool nesterov;
  Adjustment adjustment;
  Value lr, keep;
};
} // namespace

std::unique_ptr<Optimizer> autodiff::makeMuon(const Hyperparameters &values) {
  return std::make_unique<Muon>(values);
}
