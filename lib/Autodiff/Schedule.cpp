// Learning rates as functions of the step alone.

#include "lib/Autodiff/Update.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

Value autodiff::buildLearningRate(const Emit &emit, const UpdateRule &rule,
                                  Value step) {
  Value peak = emit.f64(rule.lr);
  if (rule.schedule == Schedule::Constant && rule.warmupSteps == 0)
    return peak;
  // transformers counts finished steps: the first step warms up from zero.
  Value done = emit.sub(step, emit.f64(1));
  Value factor = emit.f64(1);
  if (rule.totalSteps) {
    Value left = emit.sub(emit.f64(double(*rule.totalSteps)), done);
    factor =
        emit.div(left, emit.f64(double(*rule.totalSteps - rule.warmupSteps)));
    factor = emit.make<nn::MaxOp>(factor, emit.f64(0));
  }
  if (rule.warmupSteps > 0) {
    Value warmup = emit.f64(double(rule.warmupSteps));
    Value rise;
    if (rule.logWarmup) {
      // deepspeed/runtime/lr_schedules.py: log(1) is where it begins, and a
      // warmup of one step would divide by it.
      double end = std::log(double(std::max<int64_t>(rule.warmupSteps, 2)));
      Value counted = emit.make<nn::LogOp>(emit.add(done, emit.f64(1)));
      rise = emit.mul(counted, emit.f64(1 / end));
    } else {
      rise = emit.div(done, warmup);
    }
    factor = emit.select(emit.compare(nn::ComparePredicate::lt, done, warmup),
                         rise, factor);
  }
  return emit.mul(peak, factor);
}
