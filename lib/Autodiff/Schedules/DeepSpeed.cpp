// DeepSpeed's five schedules (runtime/lr_schedules.py of 0.19.8): what its
// classes set when they are made and after each update.

#include "lib/Autodiff/Schedules/Builders.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

/// From 0 to 1 during the warmup; it is one of 2 steps at least.
static Number buildRise(const Course &course) {
  double warmup = course.get("warmup_steps");
  if (course.rule.values.isSet("warmup"))
    return log(course.n + 1) * (1 / std::log(warmup));
  return course.n / warmup;
}

static Number between(double least, double most, Number factor) {
  if (least == 0)
    return most * factor;
  return least + (most - least) * factor;
}

Number autodiff::buildWarmupLR(const Course &course) {
  Number factor = ifLess(course.n, course.get("warmup_steps"),
                         buildRise(course), course.known(1));
  return between(course.get("warmup_min_lr"), course.base, factor);
}

/// Totals may be no longer than the warmup.
static double getLength(const Course &course) {
  return std::max(course.get("total_steps") - course.get("warmup_steps"), 1.0);
}

Number autodiff::buildWarmupDecayLR(const Course &course) {
  Number fall =
      max((course.get("total_steps") - course.n) / getLength(course), 0);
  Number factor =
      ifLess(course.n, course.get("warmup_steps"), buildRise(course), fall);
  return between(course.get("warmup_min_lr"), course.base, factor);
}

Number autodiff::buildWarmupCosineLR(const Course &course) {
  double warmup = course.get("warmup_steps"), peak = course.base;
  double first = peak * course.get("warmup_min_ratio"),
         last = peak * course.get("cos_min_ratio");
  // It has gone a step when the warmup is over.
  Number gone = min((course.n - (warmup - 1)) / getLength(course), 1);
  Number rise = between(first, peak, buildRise(course));
  Number rate = ifLess(course.n, warmup, rise, between(last, peak, wave(gone)));
  // It is made with a rate of 0, whatever its ratio is.
  return first == 0 ? rate : ifLess(course.step, 2, course.known(0), rate);
}

llvm::Error autodiff::checkDeepSpeedWarmup(ScheduleRule &rule, double) {
  double warmup = rule.values.get("warmup_steps");
  if (warmup == 0)
    return failSchedule("expected an integer of at least 1 as "
                        "'scheduler.warmup_steps' with 'scheduler.type=" +
                        rule.kind->name +
                        "', found 0, which DeepSpeed "
                        "refuses");
  if (warmup < 2)
    rule.values.say("warmup_steps", {2});
  return llvm::Error::success();
}

Number autodiff::buildLRRangeTest(const Course &course) {
  Number interval = course.n / course.get("lr_range_test_step_size");
  if (course.rule.values.isSet("lr_range_test_staircase"))
    interval = floor(interval);
  return course.get("lr_range_test_min_lr") *
         (1 + course.get("lr_range_test_step_rate") * interval);
}

namespace {
/// OneCycle's two halves, in steps.
struct Halves {
  double up, total;

  explicit Halves(const ScheduleValues &values)
      : up(values.get("cycle_first_step_size")),
        total(up + values.getOr("cycle_second_step_size", up)) {}
};
} // namespace

/// From 0 to 1 and back, on a line or by stairs. A second half of no steps is
/// over at once.
static Number buildHeight(const Course &course) {
  const ScheduleValues &values = course.rule.values;
  Halves halves(values);
  double stairs = values.get("cycle_first_stair_count"),
         stairsDown = values.getOr("cycle_second_stair_count", stairs);
  Number at = mod(course.n, halves.total);
  // Of whole numbers, so that a stair that is reached is not missed.
  Number up =
      stairs == 0 ? at / halves.up : floor(at * stairs / halves.up) / stairs;
  double down = halves.total - halves.up;
  if (down == 0)
    return up;
  Number left = halves.total - at;
  Number fall = stairsDown == 0 ? left / down
                                : floor(left * stairsDown / down) / stairsDown;
  return ifAtMost(at, halves.up, up, fall);
}

/// `cycle` in the first cycle, then `after` of how many decay intervals are
/// over.
static Number buildCycle(const Course &course, Number cycle,
                         llvm::function_ref<Number(Number intervals)> after,
                         double rate, double end) {
  Halves halves(course.rule.values);
  double size = course.get("decay_step_size");
  Number rest = size == 0 || rate == 0
                    ? course.known(end)
                    : after((course.n - halves.total) / size);
  // n is one ahead of DeepSpeed's number of the last batch.
  return ifLess(course.n, halves.total + 1, cycle, rest);
}

Number autodiff::buildDeepSpeedCycleRate(const Course &course) {
  double least = course.get("cycle_min_lr");
  double most = course.rule.values.getOr("cycle_max_lr", course.base);
  double decay = course.get("decay_lr_rate");
  return buildCycle(
      course, least + (most - least) * buildHeight(course),
      [&](Number intervals) { return least / (1 + decay * intervals); }, decay,
      least);
}

Number autodiff::buildDeepSpeedCycleMomentum(const Course &course) {
  double least = course.get("cycle_min_mom"),
         most = course.get("cycle_max_mom"),
         decay = course.get("decay_mom_rate");
  Number momentum = buildCycle(
      course, most - (most - least) * buildHeight(course),
      [&](Number intervals) { return most * (1 + decay * intervals); }, decay,
      most);
  // It is made with the least one, though it goes on from the greatest.
  return ifLess(course.step, 2, course.known(least), momentum);
}

llvm::Error autodiff::checkDeepSpeedCycle(ScheduleRule &rule, double lr) {
  double most = rule.values.getOr("cycle_max_lr", lr);
  if (rule.values.get("cycle_min_lr") > most)
    return failSchedule("expected at most the " + spellNumber(most) +
                        " of the greatest rate as 'scheduler.cycle_min_lr', "
                        "found " +
                        spellNumber(rule.values.get("cycle_min_lr")));
  return checkMomenta(rule, "cycle_min_mom", "cycle_max_mom");
}
