// PyTorch's optimizers in elementwise nn ops, and the norm that clips.

#include "lib/Autodiff/Update.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

SmallVector<StringRef> autodiff::momentNames(const UpdateRule &rule) {
  if (rule.optimizer != Optimizer::SGD)
    return {"exp_avg", "exp_avg_sq"};
  if (rule.momentum != 0)
    return {"momentum_buffer"};
  return {};
}

UpdateScalars autodiff::buildUpdateScalars(const NNBuilder &build,
                                           const UpdateRule &rule, Value lr,
                                           Value step) {
  UpdateScalars scalars;
  scalars.lr = lr;
  if (rule.optimizer == Optimizer::SGD)
    return scalars;
  auto correction = [&](double beta) {
    return build.sub(build.f64(1),
                     build.make<nn::PowOp>(build.f64(beta), step));
  };
  scalars.size = build.div(lr, correction(rule.beta1));
  scalars.sqrtCorrection = build.sqrt(correction(rule.beta2));
  if (rule.optimizer == Optimizer::AdamW && rule.weightDecay != 0)
    scalars.keep =
        build.sub(build.f64(1), build.mul(lr, build.f64(rule.weightDecay)));
  return scalars;
}

/// gradient + weight_decay · parameter
static Value addDecay(const NNBuilder &build, const UpdateRule &rule,
                      Value parameter, Value gradient) {
  if (rule.weightDecay == 0)
    return gradient;
  Value decay = build.splat(NNBuilder::typeOf(parameter), rule.weightDecay);
  return build.add(gradient, build.mul(parameter, decay));
}

static Updated buildSGD(const NNBuilder &build, const UpdateRule &rule,
                        const UpdateScalars &scalars, Value parameter,
                        Value gradient, ArrayRef<Value> moments) {
  Updated updated;
  Value direction = addDecay(build, rule, parameter, gradient);
  if (!moments.empty()) {
    // PyTorch's first buffer is the gradient: so is this one, from zero.
    Value momentum = build.splat(NNBuilder::typeOf(parameter), rule.momentum);
    direction = build.add(build.mul(moments[0], momentum), direction);
    updated.moments.push_back(direction);
  }
  updated.parameter = build.sub(
      parameter, build.mul(direction, build.like(scalars.lr, parameter)));
  return updated;
}

static Updated buildAdam(const NNBuilder &build, const UpdateRule &rule,
                         const UpdateScalars &scalars, Value parameter,
                         Value gradient, ArrayRef<Value> moments) {
  RankedTensorType type = NNBuilder::typeOf(parameter);
  if (rule.optimizer == Optimizer::Adam)
    gradient = addDecay(build, rule, parameter, gradient);
  else if (scalars.keep)
    parameter = build.mul(parameter, build.like(scalars.keep, parameter));
  Value mean =
      build.add(moments[0], build.mul(build.sub(gradient, moments[0]),
                                      build.splat(type, 1 - rule.beta1)));
  Value square = build.add(build.mul(moments[1], build.splat(type, rule.beta2)),
                           build.mul(build.mul(gradient, gradient),
                                     build.splat(type, 1 - rule.beta2)));
  Value denominator =
      build.add(build.div(build.sqrt(square),
                          build.like(scalars.sqrtCorrection, parameter)),
                build.splat(type, rule.eps));
  Value move = build.mul(build.div(mean, denominator),
                         build.like(scalars.size, parameter));
  return {build.sub(parameter, move), {mean, square}};
}

Updated autodiff::buildUpdate(const NNBuilder &build, const UpdateRule &rule,
                              const UpdateScalars &scalars, bool decayed,
                              Value parameter, Value gradient,
                              ArrayRef<Value> moments) {
  if (!decayed && rule.weightDecay != 0) {
    UpdateRule bare = rule;
    bare.weightDecay = 0;
    UpdateScalars others = scalars;
    others.keep = nullptr;
    return buildUpdate(build, bare, others, true, parameter, gradient, moments);
  }
  return rule.optimizer == Optimizer::SGD
             ? buildSGD(build, rule, scalars, parameter, gradient, moments)
             : buildAdam(build, rule, scalars, parameter, gradient, moments);
}

Value autodiff::buildSumOfSquares(const NNBuilder &build,
                                  ArrayRef<Value> gradients, Type element) {
  Value sum;
  for (Value gradient : gradients) {
    Value squares = build.cast(build.mul(gradient, gradient), element);
    Value total = build.sumFrom(build.sumFrom(squares, 1), 0);
    sum = sum ? build.add(sum, total) : total;
  }
  return sum;
}
