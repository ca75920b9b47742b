// What schedules drive beside the rate, and what cannot stand beside it.

#include "DrivenRule.h"

#include "lib/Autodiff/OptionError.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;
using namespace accel::autodiff;

StringRef accel::autodiff::getDrivenMomentum(const ScheduleRule &schedule,
                                             const OptimizerKind &optimizer) {
  if (!schedule.kind->momentum || !schedule.values.isSet("cycle_momentum"))
    return "";
  // Betas of an optimizer of matrices are those of the others.
  bool hasBetas = optimizer.find("betas") && optimizer.ofOthers.empty();
  if (hasBetas)
    return "beta1";
  // DeepSpeed drives betas, or nothing.
  bool isTorch = schedule.kind->whose == "PyTorch's";
  return isTorch && optimizer.find("momentum") ? "momentum" : "";
}

void accel::autodiff::setDriven(const ScheduleRule &schedule,
                                OptimizerRule &rule) {
  StringRef driven = getDrivenMomentum(schedule, *rule.kind);
  if (driven.empty())
    return;
  bool isTorch = schedule.values.has("max_momentum");
  rule.values.set(
      driven, schedule.values.get(isTorch ? "max_momentum" : "cycle_max_mom"));
  // DeepSpeed's OneCycle sets the second one, too.
  if (!isTorch)
    rule.values.set("beta2", 0.99);
}

/// PyTorch has no such cycle where the optimizer has no momentum.
static Error checkDriven(const UpdateRule &rule) {
  const ScheduleRule &schedule = rule.schedule;
  if (!schedule.kind->momentum || schedule.kind->whose != "PyTorch's" ||
      !schedule.values.isSet("cycle_momentum") ||
      !getDrivenMomentum(schedule, *rule.optimizer.kind).empty())
    return Error::success();
  return fail("expected an optimizer with momentum or betas beside the cycle "
              "of momentum of 'scheduler.type=" +
              schedule.kind->name + "', found '" + rule.optimizer.kind->name +
              "': say scheduler.cycle_momentum=false");
}

/// A rate that nothing reads would be lost.
static Error checkRateIsRead(const UpdateRule &rule,
                             const StringMap<StringRef> &seen) {
  const ScheduleRule &schedule = rule.schedule;
  bool ofGroups = any_of(
      rule.groups, [](const GroupSetting &group) { return group.key == "lr"; });
  if (!schedule.kind->setsRate || !seen.contains("optimizer.lr") || ofGroups)
    return Error::success();
  for (StringRef greatest : {"max_lr", "cycle_max_lr"})
    if (schedule.kind->find(greatest) && !schedule.values.has(greatest))
      return Error::success();
  return fail("expected no 'optimizer.lr' beside 'scheduler.type=" +
              schedule.kind->name +
              "', whose own keys say the rate, found one");
}

static Error readDecayCourse(UpdateRule &rule,
                             const StringMap<StringRef> &seen) {
  auto said = [&](StringRef key) { return seen.contains(key); };
  StringRef style = seen.lookup(kIncrease);
  if (style.empty() || style == "constant") {
    for (StringRef key : {kStartDecay, kEndDecay, kIncreaseSteps})
      if (said(key))
        return fail("expected '" + Twine(kIncrease) +
                    "' linear or cosine with '" + key + "', found " +
                    (style.empty() ? "none" : style));
    return Error::success();
  }
  for (StringRef key : {kStartDecay, kEndDecay})
    if (!said(key))
      return fail("expected '" + key + "' with '" + kIncrease + "=" + style +
                  "', found none");
  WeightDecayCourse course{};
  (void)seen.lookup(kStartDecay).getAsDouble(course.start);
  (void)seen.lookup(kEndDecay).getAsDouble(course.end);
  course.isCosine = style == "cosine";
  if (said(kIncreaseSteps))
    (void)seen.lookup(kIncreaseSteps).getAsInteger(10, course.steps);
  else if (rule.schedule.values.has("total_steps"))
    course.steps = int64_t(rule.schedule.values.get("total_steps"));
  else
    return fail("expected '" + Twine(kIncreaseSteps) +
                "' or 'scheduler.total_steps' with '" + kIncrease + "=" +
                style + "', found neither");
  if (course.end < course.start)
    return fail("expected at least the " + seen.lookup(kStartDecay) + " of '" +
                kStartDecay + "' as '" + kEndDecay + "', found " +
                seen.lookup(kEndDecay));
  if (said("optimizer.weight_decay") &&
      rule.optimizer.values.get("weight_decay") != course.end)
    return fail("expected no 'optimizer.weight_decay' but the " +
                seen.lookup(kEndDecay) + " of '" + kEndDecay + "', found " +
                seen.lookup("optimizer.weight_decay"));
  rule.optimizer.values.set("weight_decay", course.end);
  rule.decayCourse = course;
  return Error::success();
}

Error accel::autodiff::completeDriven(UpdateRule &rule,
                                      const StringMap<StringRef> &seen) {
  if (Error error = checkDriven(rule))
    return error;
  if (Error error = checkRateIsRead(rule, seen))
    return error;
  return readDecayCourse(rule, seen);
}
