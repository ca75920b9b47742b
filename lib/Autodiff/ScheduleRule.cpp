// The names of schedules, and which numbers each of them takes.

#include "ScheduleRule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace accel::autodiff;

static Error fail(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

/// In the order of the enumeration.
static constexpr StringLiteral kNames[] = {"constant",      "linear",
                                           "cosine",        "WarmupLR",
                                           "WarmupDecayLR", "WarmupCosineLR"};

StringRef accel::autodiff::stringifySchedule(Schedule schedule) {
  return kNames[unsigned(schedule)];
}

std::optional<Schedule> accel::autodiff::parseSchedule(StringRef name) {
  const StringLiteral *found = find(kNames, name);
  if (found == std::end(kNames))
    return std::nullopt;
  return Schedule(found - kNames);
}

std::string accel::autodiff::joinNames(unsigned schedules) {
  SmallVector<StringRef> names;
  for (auto [place, name] : enumerate(kNames))
    if (schedules & bit(Schedule(place)))
      names.push_back(name);
  StringRef last = names.pop_back_val();
  return names.empty() ? last.str() : join(names, ", ") + " or " + last.str();
}

bool accel::autodiff::isDeepSpeed(Schedule schedule) {
  return bit(schedule) & kOfDeepSpeed;
}

static std::string spell(double number) {
  std::string text;
  raw_string_ostream(text) << format("%g", number);
  return text;
}

static Error checkRates(const UpdateRule &rule) {
  for (auto [key, rate] :
       {std::pair("scheduler.min_lr", rule.minLr),
        std::pair("scheduler.warmup_min_lr", rule.warmupMinLr)})
    if (rate > rule.optimizer.lr())
      return fail("expected at most the " + spell(rule.optimizer.lr()) +
                  " of 'optimizer.lr' as '" + key + "', found " + spell(rate));
  return Error::success();
}

/// Of those that count finished steps.
static Error checkSteps(const UpdateRule &rule, const StringSet<> &seen) {
  auto needs = [](StringRef what, const Twine &with) {
    return fail("expected " + what + " with '" + with + "', found none");
  };
  if (rule.warmupSteps == 0 && rule.logWarmup)
    return needs("'scheduler.warmup_steps'", "scheduler.warmup=log");
  if (rule.warmupSteps == 0 && seen.contains("scheduler.warmup_min_lr"))
    return needs("'scheduler.warmup_steps'", "scheduler.warmup_min_lr");
  if (!rule.totalSteps) {
    if (rule.schedule == Schedule::Cosine)
      return needs("'scheduler.total_steps'", "scheduler.type=cosine");
    if (seen.contains("scheduler.min_lr"))
      return needs("'scheduler.total_steps'", "scheduler.min_lr");
    if (rule.schedule == Schedule::Linear && rule.warmupSteps == 0)
      return fail("expected 'scheduler.warmup_steps' or "
                  "'scheduler.total_steps' with 'scheduler.type=linear', found "
                  "neither");
  }
  if (rule.totalSteps && *rule.totalSteps <= rule.warmupSteps)
    return fail("expected more 'scheduler.total_steps' than the " +
                Twine(rule.warmupSteps) +
                " of 'scheduler.warmup_steps', found " +
                Twine(*rule.totalSteps));
  return checkRates(rule);
}

/// DeepSpeed's constructors have defaults of their own.
static Error completeDeepSpeed(UpdateRule &rule, const StringSet<> &seen) {
  StringRef name = stringifySchedule(rule.schedule);
  if (!seen.contains("scheduler.warmup_steps"))
    rule.warmupSteps = 1000;
  if (!seen.contains("scheduler.warmup"))
    rule.logWarmup = true;
  if (rule.warmupSteps == 0)
    return fail("expected an integer of at least 1 as "
                "'scheduler.warmup_steps' with 'scheduler.type=" +
                name + "', found 0, which DeepSpeed refuses");
  rule.warmupSteps = std::max<int64_t>(rule.warmupSteps, 2);
  if (!rule.totalSteps && rule.schedule != Schedule::WarmupLR)
    return fail("expected 'scheduler.total_steps' with 'scheduler.type=" +
                name + "', found none");
  return Error::success();
}

Error accel::autodiff::completeSchedule(UpdateRule &rule,
                                        const StringSet<> &seen) {
  return isDeepSpeed(rule.schedule) ? completeDeepSpeed(rule, seen)
                                    : checkSteps(rule, seen);
}
