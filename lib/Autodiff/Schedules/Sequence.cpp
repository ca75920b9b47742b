// PyTorch's ChainedScheduler and SequentialLR (torch/optim/lr_scheduler.py of
// 2.13).

#include "lib/Autodiff/Schedules/Builders.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

Number autodiff::buildChain(const Course &course) {
  Number rate = course.known(course.base);
  for (const ScheduleRule &part : course.rule.parts)
    rate = rate * part.kind->rate({course.build, part, course.n, course.step,
                                   /*base=*/1});
  return rate;
}

Number autodiff::buildSequence(const Course &course) {
  llvm::ArrayRef<double> milestones = course.rule.values.list("milestones");
  auto build = [&](size_t index) {
    const ScheduleRule &part = course.rule.parts[index];
    Number n = index == 0 ? course.n : course.n - milestones[index - 1];
    return part.kind->rate({course.build, part, n, course.step, course.base});
  };
  Number rate = build(0);
  for (size_t index = 1; index < course.rule.parts.size(); ++index)
    rate = ifLess(course.n, milestones[index - 1], rate, build(index));
  return rate;
}

static llvm::Error refusePart(const ScheduleRule &rule, size_t index,
                              const llvm::Twine &why) {
  return failSchedule("'schedulers[" + llvm::Twine(index) +
                      "].type=" + rule.parts[index].kind->name +
                      "' cannot be a part of " + rule.kind->name + ": " + why);
}

llvm::Error autodiff::checkChain(ScheduleRule &rule, double) {
  if (rule.parts.empty())
    return failSchedule("expected 'schedulers[0].type' with "
                        "'scheduler.type=ChainedScheduler', found none");
  for (auto [index, part] : llvm::enumerate(rule.parts))
    if (!part.kind->isFactor)
      return refusePart(rule, index,
                        "its rate is no product of optimizer.lr and a factor, "
                        "so that PyTorch's chain makes of it what came before: "
                        "SequentialLR has schedules one after another");
  return llvm::Error::success();
}

llvm::Error autodiff::checkSequence(ScheduleRule &rule, double) {
  size_t wanted = rule.values.list("milestones").size() + 1;
  if (rule.parts.size() != wanted)
    return failSchedule(
        "expected a milestone less than schedules, found " +
        llvm::Twine(wanted - 1) + " in 'scheduler.milestones' and " +
        llvm::Twine(rule.parts.size()) + " 'schedulers[I].type'");
  for (auto [index, part] : llvm::enumerate(rule.parts))
    if (part.kind->setsRate || part.kind->momentum)
      return refusePart(rule, index,
                        "it changes the rate that the others begin with when "
                        "it is made");
    else if (part.kind->clock != Clock::Finished)
      return refusePart(rule, index, "it is none of PyTorch's");
    else if (!part.parts.empty())
      return refusePart(rule, index, "it has parts of its own");
  return llvm::Error::success();
}
