// The pieces that updates have in common.

#include "lib/Autodiff/Optimizers/Optimizer.h"
#include "lib/Autodiff/UpdateRule.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

Value autodiff::spread(const NNBuilder &build, Value scalar, Value like) {
  if (std::optional<double> known = transforms::getSplatValue(scalar))
    return build.splat(*known, like);
  return build.like(scalar, like);
}

Value Scalar::spread(const NNBuilder &build, Value like) const {
  return value ? autodiff::spread(build, value, like)
               : build.splat(number, like);
}

Scalar Scalar::complement(const NNBuilder &build) const {
  return value ? Scalar(build.sub(build.f64(1), value)) : Scalar(1 - number);
}

Scalar GroupScalars::get(StringRef name) const {
  auto found = driven.find(name.str());
  return found == driven.end() ? Scalar(values.get(name))
                               : Scalar(found->second);
}

Value autodiff::scale(const NNBuilder &build, Value value,
                      const Scalar &factor) {
  return build.mul(value, factor.spread(build, value));
}

Value autodiff::lerp(const NNBuilder &build, Value old, Value value,
                     const Scalar &weight) {
  return build.add(old, scale(build, build.sub(value, old), weight));
}

Value autodiff::average(const NNBuilder &build, Value old, Value value,
                        const Share &share) {
  return build.add(scale(build, old, share.kept),
                   scale(build, value, share.rest));
}

Moments autodiff::buildMoments(const NNBuilder &build, ArrayRef<Value> states,
                               Value gradient, const Share &beta1,
                               const Share &beta2) {
  Value mean = lerp(build, states[0], gradient, beta1.rest);
  return {mean,
          average(build, states[1], build.mul(gradient, gradient), beta2)};
}

Value autodiff::biasCorrection(const NNBuilder &build, const Scalar &beta,
                               Value step) {
  return build.sub(build.f64(1), build.make<nn::PowOp>(beta.in(build), step));
}

Value autodiff::addDecay(const NNBuilder &build, const Scalar &weightDecay,
                         const ParameterValues &values) {
  if (weightDecay.isZero())
    return values.gradient;
  return build.add(values.gradient,
                   scale(build, values.parameter, weightDecay));
}

Value autodiff::buildKeep(const NNBuilder &build, const GroupScalars &group) {
  Scalar weightDecay = group.get("weight_decay");
  if (weightDecay.isZero())
    return nullptr;
  return build.sub(build.f64(1), build.mul(group.lr, weightDecay.in(build)));
}

Value autodiff::decay(const NNBuilder &build, Value keep, Value parameter) {
  return keep ? build.mul(parameter, spread(build, keep, parameter))
              : parameter;
}

Value autodiff::buildSquares(const NNBuilder &build, Value value,
                             bool isStack) {
  // Rows first, so that kernels have rows.
  Value squares = build.sumFrom(build.mul(value, value), 1);
  return isStack ? squares : build.sumFrom(squares, 0);
}

Value autodiff::buildTrust(const NNBuilder &build, Value above, Value below,
                           Value size) {
  Value zero = build.splat(0, above), one = build.splat(1, above);
  auto isPositive = [&](Value value) {
    return build.compare(nn::ComparePredicate::gt, value, zero);
  };
  Value has = build.make<nn::AndOp>(isPositive(above), isPositive(size));
  return build.select(has, build.div(above, build.select(has, below, one)),
                      one);
}

Value autodiff::repeat(const NNBuilder &build, Value value, Value like) {
  RankedTensorType type = typeOf(like);
  if (typeOf(value).getRank() == 0)
    return build.spread(value, type.getShape());
  return build.expand(value,
                      llvm::to_vector(llvm::seq<int64_t>(1, type.getRank())),
                      type.getShape());
}

double autodiff::countStates(const OptimizerRule &rule) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  auto large = RankedTensorType::get({1024, 1024}, Float32Type::get(&context));
  std::unique_ptr<Optimizer> optimizer = rule.kind->make(rule.values);
  double elements = 0; // of float32
  for (const StateSpec &state : optimizer->getStates(large, /*isStack=*/false))
    elements += double(state.type.getNumElements()) *
                state.type.getElementTypeBitWidth() / 32;
  return elements / double(large.getNumElements()) +
         (optimizer->keepsAverage() ? 1 : 0);
}
