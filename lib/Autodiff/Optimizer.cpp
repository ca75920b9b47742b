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

UpdateScalars autodiff::buildUpdateScalars(const Emit &emit,
                                           const UpdateRule &rule, Value lr,
                                           Value step) {
  UpdateScalars scalars;
  scalars.lr = lr;
  if (rule.optimizer == Optimizer::SGD)
    return scalars;
  auto correction = [&](double beta) {
    return emit.sub(emit.f64(1), emit.make<nn::PowOp>(emit.f64(beta), step));
  };
  scalars.size = emit.div(lr, correction(rule.beta1));
  scalars.sqrtCorrection = emit.sqrt(correction(rule.beta2));
  if (rule.optimizer == Optimizer::AdamW && rule.weightDecay != 0)
    scalars.keep =
        emit.sub(emit.f64(1), emit.mul(lr, emit.f64(rule.weightDecay)));
  return scalars;
}

/// gradient + weight_decay · parameter
static Value addDecay(const Emit &emit, const UpdateRule &rule, Value parameter,
                      Value gradient) {
  if (rule.weightDecay == 0)
    return gradient;
  Value decay = emit.splat(Emit::typeOf(parameter), rule.weightDecay);
  return emit.add(gradient, emit.mul(parameter, decay));
}

static Updated buildSGD(const Emit &emit, const UpdateRule &rule,
                        const UpdateScalars &scalars, Value parameter,
                        Value gradient, ArrayRef<Value> moments) {
  Updated updated;
  Value direction = addDecay(emit, rule, parameter, gradient);
  if (!moments.empty()) {
    // PyTorch's first buffer is the gradient: so is this one, from zero.
    Value momentum = emit.splat(Emit::typeOf(parameter), rule.momentum);
    direction = emit.add(emit.mul(moments[0], momentum), direction);
    updated.moments.push_back(direction);
  }
  updated.parameter = emit.sub(
      parameter, emit.mul(direction, emit.like(scalars.lr, parameter)));
  return updated;
}

static Updated buildAdam(const Emit &emit, const UpdateRule &rule,
                         const UpdateScalars &scalars, Value parameter,
                         Value gradient, ArrayRef<Value> moments) {
  RankedTensorType type = Emit::typeOf(parameter);
  if (rule.optimizer == Optimizer::Adam)
    gradient = addDecay(emit, rule, parameter, gradient);
  else if (scalars.keep)
    parameter = emit.mul(parameter, emit.like(scalars.keep, parameter));
  Value mean = emit.add(moments[0], emit.mul(emit.sub(gradient, moments[0]),
                                             emit.splat(type, 1 - rule.beta1)));
  Value square = emit.add(
      emit.mul(moments[1], emit.splat(type, rule.beta2)),
      emit.mul(emit.mul(gradient, gradient), emit.splat(type, 1 - rule.beta2)));
  Value denominator = emit.add(
      emit.div(emit.sqrt(square), emit.like(scalars.sqrtCorrection, parameter)),
      emit.splat(type, rule.eps));
  Value move =
      emit.mul(emit.div(mean, denominator), emit.like(scalars.size, parameter));
  return {emit.sub(parameter, move), {mean, square}};
}

Updated autodiff::buildUpdate(const Emit &emit, const UpdateRule &rule,
                              const UpdateScalars &scalars, Value parameter,
                              Value gradient, ArrayRef<Value> moments) {
  return rule.optimizer == Optimizer::SGD
             ? buildSGD(emit, rule, scalars, parameter, gradient, moments)
             : buildAdam(emit, rule, scalars, parameter, gradient, moments);
}

Value autodiff::buildGlobalNorm(const Emit &emit, ArrayRef<Value> gradients,
                                Type element) {
  Value sum;
  for (Value gradient : gradients) {
    Value squares = emit.cast(emit.mul(gradient, gradient), element);
    Value total = emit.sumFrom(emit.sumFrom(squares, 1), 0);
    sum = sum ? emit.add(sum, total) : total;
  }
  return emit.sqrt(sum);
}
