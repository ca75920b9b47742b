// Learning rates as functions of the step alone.

#include "lib/Autodiff/Schedule.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
/// The factors of a schedule, as functions of its number.
class Course {
public:
  /// `number`: of the step, by the schedule's own clock.
  Course(const NNBuilder &build, const UpdateRule &rule, Value number)
      : build(build), rule(rule), number(number),
        warmup(double(rule.warmupSteps)) {}

  /// From 0 to 1, during the warmup.
  Value rise() const;
  /// From 1 to 0, after it.
  Value fall() const;
  Value isWarmup() const {
    return build.compare(nn::ComparePredicate::lt, number, build.f64(warmup));
  }

private:
  const NNBuilder &build;
  const UpdateRule &rule;
  Value number;
  double warmup;
};
} // namespace

Value Course::rise() const {
  if (!rule.logWarmup)
    return build.div(number, build.f64(warmup));
  // log(1) is where it begins, and a warmup of one step would divide by it.
  double end = std::log(std::max(warmup, 2.0));
  Value counted = build.make<nn::LogOp>(build.add(number, build.f64(1)));
  return build.mul(counted, build.f64(1 / end));
}

Value Course::fall() const {
  if (!rule.totalSteps)
    return build.f64(1);
  double total = double(*rule.totalSteps);
  // DeepSpeed takes totals that are not longer than the warmup.
  double length = std::max(total - warmup, 1.0);
  if (rule.schedule == Schedule::Linear ||
      rule.schedule == Schedule::WarmupDecayLR) {
    Value left = build.sub(build.f64(total), number);
    return build.make<nn::MaxOp>(build.div(left, build.f64(length)),
                                 build.f64(0));
  }
  // DeepSpeed's cosine has gone a step when the warmup is over.
  double start = warmup - (rule.schedule == Schedule::WarmupCosineLR ? 1 : 0);
  Value gone =
      build.div(build.sub(number, build.f64(start)), build.f64(length));
  Value angle =
      build.mul(build.make<nn::MinOp>(gone, build.f64(1)), build.f64(M_PI));
  return build.mul(build.add(build.cos(angle), build.f64(1)), build.f64(0.5));
}

Value autodiff::buildLearningRate(const NNBuilder &build,
                                  const UpdateRule &rule, Value step) {
  double peak = rule.optimizer.lr();
  if (rule.schedule == Schedule::Constant && rule.warmupSteps == 0)
    return build.f64(peak);
  bool ofDeepSpeed = isDeepSpeed(rule.schedule);
  // transformers and Megatron-LM count finished steps: the first step warms up
  // from the least rate. DeepSpeed's classes set that one when they are made,
  // and again after the first step, which is number 0.
  Value number = build.sub(step, build.f64(ofDeepSpeed ? 2 : 1));
  if (ofDeepSpeed)
    number = build.make<nn::MaxOp>(number, build.f64(0));
  double first = rule.warmupMinLr, last = rule.minLr;
  if (rule.schedule == Schedule::WarmupCosineLR) {
    first = peak * rule.warmupMinRatio;
    last = peak * rule.cosMinRatio;
  } else if (ofDeepSpeed) {
    last = first;
  }
  Course course(build, rule, number);
  auto rateAt = [&](double least, Value factor) {
    if (least == 0)
      return build.mul(build.f64(peak), factor);
    return build.add(build.f64(least),
                     build.mul(build.f64(peak - least), factor));
  };
  if (rule.warmupSteps == 0)
    return rateAt(last, course.fall());
  Value fall = course.fall(), rise = course.rise();
  Value isWarmup = course.isWarmup();
  if (first == last)
    return rateAt(first, build.select(isWarmup, rise, fall));
  fall = rateAt(last, fall);
  rise = rateAt(first, rise);
  Value rate = build.select(isWarmup, rise, fall);
  // DeepSpeed's WarmupCosineLR is made with a rate of 0, whatever its ratio is.
  if (rule.schedule == Schedule::WarmupCosineLR && first != 0)
    rate = build.select(
        build.compare(nn::ComparePredicate::lt, step, build.f64(2)),
        build.f64(0), rate);
  return rate;
}
