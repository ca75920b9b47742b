// Hyperparameters as functions of the step alone.

#include "lib/Autodiff/Schedule.h"

#include "lib/Autodiff/Schedules/Course.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

/// Megatron-LM's get_wd, of a whole group.
static Number buildDecay(const WeightDecayCourse &course, Number step) {
  Number share = min((step - 1) / double(course.steps), 1);
  if (course.isCosine)
    share = 1 - wave(share);
  return course.start + (course.end - course.start) * share;
}

Schedules::Schedules(const NNBuilder &build, const UpdateRule &rule, Value step)
    : build(build), rule(rule), step(step),
      rate(buildRate(build, rule.schedule, step, rule.optimizer.lr()).get()) {
  Number number(build, step);
  const ScheduleRule &schedule = rule.schedule;
  if (schedule.kind->momentum && schedule.values.isSet("cycle_momentum"))
    momentum = schedule.kind
                   ->momentum({build, schedule, number - 1, number,
                               rule.optimizer.lr()})
                   .get();
  if (rule.decayCourse)
    decay = buildDecay(*rule.decayCourse, number).get();
}

Value Schedules::buildGroupRate(const OptimizerRule &own) const {
  double lr = own.lr();
  if (own.leastLr) {
    ScheduleRule schedule = rule.schedule;
    schedule.values.say("min_lr", {*own.leastLr});
    return buildRate(build, schedule, step, lr).get();
  }
  if (lr == rule.optimizer.lr())
    return rate;
  if (rule.schedule.kind->groups == GroupRates::Own)
    return buildRate(build, rule.schedule, step, lr).get();
  return build.mul(rate, build.f64(lr / rule.optimizer.lr()));
}

GroupScalars Schedules::buildGroup(const OptimizerRule &own) const {
  GroupScalars group{own.values, buildGroupRate(own), step, {}};
  StringRef driven = getDrivenMomentum(rule.schedule, *own.kind);
  if (!driven.empty())
    group.driven[driven.str()] = momentum;
  double decayed = own.values.get("weight_decay");
  if (decay && decayed != 0) {
    double whole = rule.optimizer.values.get("weight_decay");
    group.driven["weight_decay"] =
        decayed == whole ? decay : build.mul(decay, build.f64(decayed / whole));
  }
  return group;
}
