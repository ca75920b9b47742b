// The other schedules of transformers' get_scheduler (optimization.py of 5.24).
// Those of cosines stay where they are at total_steps; the originals would rise
// again.

#include "lib/Autodiff/Schedules/Builders.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

Number autodiff::buildCosineRestarts(const Course &course) {
  double warmup = course.get("warmup_steps");
  double length = course.get("total_steps") - warmup;
  Number progress = (course.n - warmup) / length;
  Number turns = mod(course.get("num_cycles") * progress, 1);
  Number fall = ifLess(progress, 1, wave(turns), course.known(0));
  return course.base * afterWarmup(course, fall);
}

/// The least rate as a part of the rate.
static double getLeastShare(const Course &course) {
  const ScheduleValues &values = course.rule.values;
  return values.has("min_lr") ? values.get("min_lr") / course.base
                              : values.get("min_lr_rate");
}

/// From 1 to the least rate's share, on half a wave.
static Number buildWaveToLeast(const Course &course, Number progress) {
  double least = getLeastShare(course);
  Number turns = min(progress, 1) * (2 * course.get("num_cycles"));
  return wave(turns) * (1 - least) + least;
}

Number autodiff::buildCosineMinLr(const Course &course) {
  double warmup = course.get("warmup_steps");
  double length = course.get("total_steps") - warmup;
  Number fall = buildWaveToLeast(course, (course.n - warmup) / length);
  return course.base * afterWarmup(course, fall);
}

Number autodiff::buildCosineWarmupMinLr(const Course &course) {
  double warmup = course.get("warmup_steps");
  double length = course.get("total_steps") - warmup;
  // Of this one the first step has gone a step.
  Number factor = buildWaveToLeast(course, (course.n - (warmup - 1)) / length);
  if (warmup > 0) {
    Number rise = (course.n + 1) / warmup;
    if (course.rule.values.has("warmup_lr_rate")) {
      double first = course.get("warmup_lr_rate");
      rise = first + (1 - first) * course.n / std::max(1., warmup - 1);
    }
    factor = ifLess(course.n, warmup, rise, factor);
  }
  return course.base * factor;
}

llvm::Error autodiff::checkCosineMinLr(ScheduleRule &rule, double lr) {
  if (rule.values.has("min_lr") == rule.values.has("min_lr_rate"))
    return failSchedule("expected 'scheduler.min_lr' or "
                        "'scheduler.min_lr_rate' with 'scheduler.type=" +
                        rule.kind->name + "', found " +
                        (rule.values.has("min_lr") ? "both" : "neither"));
  if (rule.values.has("min_lr") && lr == 0)
    return failSchedule("expected 'optimizer.lr' above 0 with "
                        "'scheduler.type=" +
                        rule.kind->name + "'");
  if (llvm::Error error = checkBelow(rule, "min_lr", lr))
    return error;
  return checkLengths(rule);
}

Number autodiff::buildPolynomial(const Course &course) {
  double warmup = course.get("warmup_steps"), end = course.get("lr_end");
  double length = course.get("total_steps") - warmup;
  // The warmup would make it more than 1, and a root of less than 0 is none.
  Number left = min(max(1 - (course.n - warmup) / length, 0), 1);
  Number fall = (course.base - end) * pow(left, course.get("power")) + end;
  if (warmup == 0)
    return fall;
  return ifLess(course.n, warmup, course.base * (course.n / warmup), fall);
}

llvm::Error autodiff::checkPolynomial(ScheduleRule &rule, double lr) {
  if (rule.values.get("lr_end") >= lr)
    return failSchedule("expected less than the " + spellNumber(lr) +
                        " of 'optimizer.lr' as 'scheduler.lr_end', found " +
                        spellNumber(rule.values.get("lr_end")));
  return checkLengths(rule);
}

Number autodiff::buildInverseSqrt(const Course &course) {
  double warmup = course.get("warmup_steps");
  double scale =
      course.rule.values.getOr("timescale", warmup > 0 ? warmup : 10000);
  // During the warmup the root may be of 0 or less, and is not taken.
  Number moved = max(course.n, warmup) + (scale - warmup);
  return course.base * afterWarmup(course, 1 / sqrt(moved / scale));
}

namespace {
/// As they stand in the tables of words.
enum Shape { kLinearShape, kCosineShape, kRootShape };
} // namespace

Number autodiff::buildWarmupStableDecay(const Course &course) {
  const ScheduleValues &values = course.rule.values;
  double warmup = course.get("warmup_steps"), decay = course.get("decay_steps");
  double stable = values.has("stable_steps")
                      ? values.get("stable_steps")
                      : values.get("total_steps") - warmup - decay;
  double least = course.get("min_lr_ratio");
  auto between = [&](Number factor) { return factor * (1 - least) + least; };
  Number factor = course.known(least);
  if (decay > 0) {
    Number progress = (course.n - (warmup + stable)) / decay;
    Number fall = 1 - progress;
    if (values.get("decay_type") == kCosineShape)
      fall = wave(progress * (2 * course.get("num_cycles")));
    else if (values.get("decay_type") == kRootShape)
      fall = 1 - sqrt(max(progress, 0));
    factor = ifLess(course.n, warmup + stable + decay, between(fall), factor);
  }
  factor = ifLess(course.n, warmup + stable, course.known(1), factor);
  if (warmup > 0) {
    Number progress = course.n / warmup, rise = progress;
    if (values.get("warmup_type") == kCosineShape)
      rise = 1 - wave(progress);
    else if (values.get("warmup_type") == kRootShape)
      rise = 1 - sqrt(max(1 - progress, 0));
    factor = ifLess(course.n, warmup, between(rise), factor);
  }
  return course.base * factor;
}

llvm::Error autodiff::checkWarmupStableDecay(ScheduleRule &rule, double) {
  const ScheduleValues &values = rule.values;
  if (values.has("stable_steps") == values.has("total_steps"))
    return failSchedule(
        "expected 'scheduler.stable_steps' or "
        "'scheduler.total_steps' with "
        "'scheduler.type=warmup_stable_decay', found " +
        StringRef(values.has("total_steps") ? "both" : "neither"));
  double ends = values.get("warmup_steps") + values.get("decay_steps");
  if (values.has("total_steps") && values.get("total_steps") < ends)
    return failSchedule("expected at least the " + spellNumber(ends) +
                        " of 'scheduler.warmup_steps' and "
                        "'scheduler.decay_steps' together as "
                        "'scheduler.total_steps', found " +
                        spellNumber(values.get("total_steps")));
  return llvm::Error::success();
}
