// constant, constant_with_warmup, linear and cosine, as transformers (5.24) has
// them, and with Megatron-LM's first and least rates: a warmup, and a fall to
// where the rate stays.

#include "lib/Autodiff/Schedules/Builders.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
/// A rate that goes between two others.
struct Range {
  double from, to;

  Number at(Number factor) const {
    if (from == 0)
      return to * factor;
    return from + (to - from) * factor;
  }
};
} // namespace

/// From 0 to 1 during the warmup.
static Number buildWarmup(const Course &course) {
  double warmup = course.get("warmup_steps");
  if (!course.rule.values.isSet("warmup"))
    return course.n / warmup;
  // log(1) is where it begins, and a warmup of one step would divide by it.
  return log(course.n + 1) * (1 / std::log(std::max(warmup, 2.0)));
}

/// The warmup before `fall`, which goes from 1 to 0 at the least rate.
static Number buildWarmupThen(const Course &course, Number fall) {
  double warmup = course.get("warmup_steps");
  Range up{course.get("warmup_min_lr"), course.base};
  Range down{course.rule.values.getOr("min_lr", 0), course.base};
  if (warmup == 0)
    return down.at(fall);
  Number rise = buildWarmup(course);
  if (up.from == down.from)
    return up.at(ifLess(course.n, warmup, rise, fall));
  return ifLess(course.n, warmup, up.at(rise), down.at(fall));
}

/// How far the fall is, from 0 on.
static Number buildProgress(const Course &course) {
  double warmup = course.get("warmup_steps");
  return (course.n - warmup) / (course.get("total_steps") - warmup);
}

Number autodiff::buildConstant(const Course &course) {
  if (course.get("warmup_steps") == 0)
    return course.known(course.base);
  return buildWarmupThen(course, course.known(1));
}

Number autodiff::buildLinear(const Course &course) {
  if (!course.rule.values.has("total_steps"))
    return buildConstant(course);
  double total = course.get("total_steps");
  double length = total - course.get("warmup_steps");
  return buildWarmupThen(course, max((total - course.n) / length, 0));
}

Number autodiff::buildCosine(const Course &course) {
  double halves = 2 * course.get("num_cycles");
  Number progress = min(buildProgress(course), 1);
  return buildWarmupThen(course,
                         wave(halves == 1 ? progress : progress * halves));
}

Number autodiff::afterWarmup(const Course &course, Number after) {
  double warmup = course.get("warmup_steps");
  if (warmup == 0)
    return after;
  return ifLess(course.n, warmup, course.n / warmup, after);
}

llvm::Error autodiff::checkWarmup(ScheduleRule &rule, double lr) {
  auto needs = [](StringRef key, const Twine &with) {
    return failSchedule("expected 'scheduler." + key + "' with '" + with +
                        "', found none");
  };
  const ScheduleValues &values = rule.values;
  if (values.get("warmup_steps") == 0 && values.isSet("warmup"))
    return needs("warmup_steps", "scheduler.warmup=log");
  if (values.get("warmup_steps") == 0 && values.isSaid("warmup_min_lr"))
    return needs("warmup_steps", "scheduler.warmup_min_lr");
  if (!values.has("total_steps") && values.isSaid("min_lr"))
    return needs("total_steps", "scheduler.min_lr");
  if (llvm::Error error = checkLengths(rule))
    return error;
  if (llvm::Error error = checkBelow(rule, "min_lr", lr))
    return error;
  return checkBelow(rule, "warmup_min_lr", lr);
}

llvm::Error autodiff::checkLinear(ScheduleRule &rule, double lr) {
  if (!rule.values.has("total_steps") && !rule.values.isSet("warmup_steps") &&
      !rule.values.isSaid("min_lr"))
    return failSchedule("expected 'scheduler.warmup_steps' or "
                        "'scheduler.total_steps' with 'scheduler.type=linear', "
                        "found neither");
  return checkWarmup(rule, lr);
}
