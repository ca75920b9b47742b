// Learning rates as functions of the step alone.

#include "lib/Autodiff/Update.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

Value autodiff::buildLearningRate(const NNBuilder &build,
                                  const UpdateRule &rule, Value step) {
  Value peak = build.f64(rule.lr);
  if (rule.schedule == Schedule::Constant && rule.warmupSteps == 0)
    return peak;
  // transformers counts finished steps: the first step warms up from zero.
  Value done = build.sub(step, build.f64(1));
  Value factor = build.f64(1);
  if (rule.totalSteps) {
    Value left = build.sub(build.f64(double(*rule.totalSteps)), done);
    factor =
        build.div(left, build.f64(double(*rule.totalSteps - rule.warmupSteps)));
    factor = build.make<nn::MaxOp>(factor, build.f64(0));
  }
  if (rule.warmupSteps > 0) {
    Value warmup = build.f64(double(rule.warmupSteps));
    Value rise;
    if (rule.logWarmup) {
      // deepspeed/runtime/lr_schedules.py: log(1) is where it begins, and a
      // warmup of one step would divide by it.
      double end = std::log(double(std::max<int64_t>(rule.warmupSteps, 2)));
      Value counted = build.make<nn::LogOp>(build.add(done, build.f64(1)));
      rise = build.mul(counted, build.f64(1 / end));
    } else {
      rise = build.div(done, warmup);
    }
    factor = build.select(build.compare(nn::ComparePredicate::lt, done, warmup),
                          rise, factor);
  }
  return build.mul(peak, factor);
}
