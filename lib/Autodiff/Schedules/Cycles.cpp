// PyTorch's CyclicLR and OneCycleLR (torch/optim/lr_scheduler.py of 2.13;
// Smith, arXiv:1506.01186 and arXiv:1708.07120), which drive the first momentum
// too.

#include "lib/Autodiff/Schedules/Builders.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

llvm::Error autodiff::checkMomenta(const ScheduleRule &rule, StringRef least,
                                   StringRef most) {
  const ScheduleValues &values = rule.values;
  if (!values.isSet("cycle_momentum")) {
    for (StringRef key : {least, most})
      if (values.isSaid(key))
        return failSchedule("expected 'scheduler.cycle_momentum=true' with "
                            "'scheduler." +
                            key + "', found false");
    return llvm::Error::success();
  }
  if (values.get(least) <= values.get(most))
    return llvm::Error::success();
  return failSchedule("expected at most the " + spellNumber(values.get(most)) +
                      " of 'scheduler." + most + "' as 'scheduler." + least +
                      "', found " + spellNumber(values.get(least)));
}

namespace {
/// The shape of CyclicLR's triangles.
enum CyclicMode { kTriangular, kTriangular2, kExpRange };
} // namespace

/// From 0 up to what the mode leaves of 1, and down again.
static Number buildTriangle(const Course &course) {
  const ScheduleValues &values = course.rule.values;
  double up = values.get("step_size_up");
  double total = up + values.getOr("step_size_down", up);
  Number at = mod(course.n, total);
  Number height = ifAtMost(at, up, at / up, (total - at) / (total - up));
  if (values.get("mode") == kTriangular2)
    return height * pow(0.5, floor(course.n / total));
  if (values.get("mode") == kExpRange)
    return height * pow(values.get("gamma"), course.n);
  return height;
}

/// `max_lr`, or optimizer.lr where it says the greatest rate.
static double getGreatest(const Course &course) {
  return course.rule.values.getOr("max_lr", course.base);
}

Number autodiff::buildCyclicRate(const Course &course) {
  double least = course.get("base_lr");
  return least + (getGreatest(course) - least) * buildTriangle(course);
}

Number autodiff::buildCyclicMomentum(const Course &course) {
  double most = course.get("max_momentum");
  return most - (most - course.get("base_momentum")) * buildTriangle(course);
}

llvm::Error autodiff::checkCyclic(ScheduleRule &rule, double lr) {
  double greatest = rule.values.getOr("max_lr", lr);
  if (rule.values.get("base_lr") > greatest)
    return failSchedule("expected at most the " + spellNumber(greatest) +
                        " of the greatest rate as 'scheduler.base_lr', found " +
                        spellNumber(rule.values.get("base_lr")));
  if (rule.values.isSaid("gamma") && rule.values.get("mode") != kExpRange)
    return failSchedule("expected 'scheduler.mode=exp_range' with "
                        "'scheduler.gamma'");
  return checkMomenta(rule, "base_momentum", "max_momentum");
}

namespace {
/// A part of OneCycleLR: from one number to the next, until a step.
struct Phase {
  double end, from, to;
};
} // namespace

/// Where OneCycleLR's phases end.
static SmallVector<double> getEnds(const Course &course) {
  double total = course.get("total_steps"), share = course.get("pct_start");
  if (course.rule.values.isSet("three_phase"))
    return {share * total - 1, 2 * share * total - 2, total - 1};
  return {share * total - 1, total - 1};
}

static Number buildPhases(const Course &course, ArrayRef<Phase> phases) {
  bool isLinear = course.rule.values.isSet("anneal_strategy");
  auto anneal = [&](const Phase &phase, double start) {
    Number share = (course.n - start) / (phase.end - start);
    if (isLinear)
      return (phase.to - phase.from) * share + phase.from;
    return phase.to + (phase.from - phase.to) * wave(share);
  };
  // PyTorch refuses to go on after the last; the rate stays.
  Number value = course.known(phases.back().to);
  for (size_t index = phases.size(); index-- > 0;) {
    const Phase &phase = phases[index];
    double start = index == 0 ? 0 : phases[index - 1].end;
    // A phase of no steps divides by 0, and nobody is in it.
    if (phase.end > start || (index == 0 && phase.end > 0))
      value = ifAtMost(course.n, phase.end, anneal(phase, start), value);
  }
  return value;
}

Number autodiff::buildOneCycleLRRate(const Course &course) {
  double most = getGreatest(course), first = most / course.get("div_factor"),
         last = first / course.get("final_div_factor");
  SmallVector<double> ends = getEnds(course);
  if (ends.size() == 3)
    return buildPhases(course, {{ends[0], first, most},
                                {ends[1], most, first},
                                {ends[2], first, last}});
  return buildPhases(course, {{ends[0], first, most}, {ends[1], most, last}});
}

Number autodiff::buildOneCycleLRMomentum(const Course &course) {
  double most = course.get("max_momentum"), least = course.get("base_momentum");
  SmallVector<double> ends = getEnds(course);
  if (ends.size() == 3)
    return buildPhases(course, {{ends[0], most, least},
                                {ends[1], least, most},
                                {ends[2], most, most}});
  return buildPhases(course, {{ends[0], most, least}, {ends[1], least, most}});
}

llvm::Error autodiff::checkOneCycleLR(ScheduleRule &rule, double) {
  double total = rule.values.get("total_steps"),
         share = rule.values.get("pct_start");
  // PyTorch divides by 0 in the first step.
  if (share * total == 1)
    return failSchedule("expected a rise of more than no steps, found "
                        "'scheduler.pct_start=" +
                        spellNumber(share) + "' of " + spellNumber(total) +
                        " steps");
  return checkMomenta(rule, "base_momentum", "max_momentum");
}
