// Megatron-LM's schedules that are no other's: inverse-square-root and WSD
// (core/optimizer_param_scheduler.py of 0.16).

#include "lib/Autodiff/Schedules/Builders.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

/// The warmup before `rate`, and the least rate after the end.
static Number build(const Course &course, Number rate) {
  double warmup = course.get("warmup_steps"),
         first = course.get("warmup_min_lr");
  rate = ifAtMost(course.n, course.get("total_steps"), rate,
                  course.known(course.get("min_lr")));
  if (warmup == 0)
    return rate;
  Number rise = first + (course.base - first) * course.n / warmup;
  return ifAtMost(course.n, warmup, rise, rate);
}

Number autodiff::buildInverseSquareRoot(const Course &course) {
  double warmup = std::max(course.get("warmup_steps"), 1.0);
  Number rate = course.base * std::sqrt(warmup) / sqrt(max(course.n, 1));
  return build(course, max(rate, course.get("min_lr")));
}

namespace {
/// As they stand in the table of words.
enum Style { kExponential, kLinear, kCosine, kMinusSqrt };
} // namespace

Number autodiff::buildWSD(const Course &course) {
  double decay = course.get("wsd_decay_steps"),
         start = course.get("total_steps") - decay,
         least = course.get("min_lr");
  // Before the start it is 0, of which the whole rate is left.
  Number gone = max((course.n - start) / decay, 0);
  Number left = 1 - gone;
  switch (static_cast<Style>(course.get("lr_wsd_decay_style"))) {
  case kExponential:
    left = 2 * pow(0.5, gone) - 1;
    break;
  case kLinear:
    break;
  case kCosine:
    left = wave(gone);
    break;
  case kMinusSqrt:
    left = 1 - sqrt(gone);
    break;
  }
  return build(course, least + (course.base - least) * left);
}

llvm::Error autodiff::checkWSD(ScheduleRule &rule, double lr) {
  const ScheduleValues &values = rule.values;
  if (values.isSaid("warmup_min_lr") && !values.isSet("warmup_steps"))
    return failSchedule("expected 'scheduler.warmup_steps' with "
                        "'scheduler.warmup_min_lr', found none");
  if (values.getOr("wsd_decay_steps", 0) > values.get("total_steps"))
    return failSchedule("expected at most the " +
                        spellNumber(values.get("total_steps")) +
                        " of 'scheduler.total_steps' as "
                        "'scheduler.wsd_decay_steps', found " +
                        spellNumber(values.get("wsd_decay_steps")));
  if (llvm::Error error = checkBelow(rule, "min_lr", lr))
    return error;
  if (llvm::Error error = checkBelow(rule, "warmup_min_lr", lr))
    return error;
  return checkLengths(rule);
}
