// The table of `--set` keys that the update reads.

#include "UpdateRule.h"

#include "lib/Names/Nearest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"

#include <cmath>

using namespace llvm;
using namespace accel::autodiff;

static Error fail(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

namespace {
/// The value of one setting, and where it goes.
struct Setting {
  StringRef key, value;
  UpdateRule &rule;

  Error expected(const Twine &what) const {
    return fail("expected " + what + " as '" + key + "', found '" + value +
                "'");
  }
  Error number(double &into) const {
    double parsed;
    if (value.getAsDouble(parsed) || !std::isfinite(parsed) || parsed < 0)
      return expected("a number of at least 0");
    into = parsed;
    return Error::success();
  }
  Error count(int64_t &into, int64_t least) const {
    int64_t parsed;
    if (value.getAsInteger(10, parsed) || parsed < least)
      return expected("an integer of at least " + Twine(least));
    into = parsed;
    return Error::success();
  }
};

enum Readers : unsigned { kSGD = 1, kAdam = 2, kAdamW = 4, kAll = 7 };

struct Key {
  StringLiteral name;
  /// Which optimizers read it.
  unsigned readers;
  Error (*read)(const Setting &);
};
} // namespace

static Error readBetas(const Setting &setting) {
  auto [first, second] = setting.value.split(',');
  double beta1, beta2;
  if (first.getAsDouble(beta1) || second.getAsDouble(beta2) ||
      !(beta1 >= 0 && beta1 < 1) || !(beta2 >= 0 && beta2 < 1))
    return setting.expected("two numbers in [0, 1) like 0.9,0.999");
  setting.rule.beta1 = beta1;
  setting.rule.beta2 = beta2;
  return Error::success();
}

static Error readClipping(const Setting &setting) {
  double norm;
  if (setting.value.getAsDouble(norm) || !std::isfinite(norm) || norm <= 0)
    return setting.expected("a number above 0");
  setting.rule.clipping = norm;
  return Error::success();
}

static Error readScheduleType(const Setting &setting) {
  std::optional<Schedule> type =
      StringSwitch<std::optional<Schedule>>(setting.value)
          .Case("constant", Schedule::Constant)
          .Case("linear", Schedule::Linear)
          .Default(std::nullopt);
  if (!type)
    return setting.expected("constant or linear");
  setting.rule.schedule = *type;
  return Error::success();
}

static Error readWarmup(const Setting &setting) {
  if (setting.value != "linear" && setting.value != "log")
    return setting.expected("linear or log");
  setting.rule.logWarmup = setting.value == "log";
  return Error::success();
}

static constexpr Key kKeys[] = {
    {"optimizer.lr", kAll,
     [](const Setting &s) { return s.number(s.rule.lr); }},
    {"optimizer.betas", kAdam | kAdamW, readBetas},
    {"optimizer.eps", kAdam | kAdamW,
     [](const Setting &s) { return s.number(s.rule.eps); }},
    {"optimizer.weight_decay", kAll,
     [](const Setting &s) { return s.number(s.rule.weightDecay); }},
    {"optimizer.momentum", kSGD,
     [](const Setting &s) { return s.number(s.rule.momentum); }},
    {"gradient_clipping", kAll, readClipping},
    {"scheduler.type", kAll, readScheduleType},
    {"scheduler.warmup", kAll, readWarmup},
    {"scheduler.warmup_steps", kAll,
     [](const Setting &s) { return s.count(s.rule.warmupSteps, 0); }},
    {"scheduler.total_steps", kAll,
     [](const Setting &s) {
       int64_t steps = 0;
       Error error = s.count(steps, 1);
       s.rule.totalSteps = steps;
       return error;
     }},
    {"seed", kAll, [](const Setting &s) { return s.count(s.rule.seed, 0); }},
};

static const Key *findKey(StringRef name) {
  const Key *found =
      find_if(kKeys, [&](const Key &key) { return key.name == name; });
  return found == std::end(kKeys) ? nullptr : found;
}

static StringRef nearestKey(StringRef name) {
  SmallVector<StringRef> names;
  for (const Key &key : kKeys)
    names.push_back(key.name);
  return accel::nearestName(name, names);
}

static Error checkSchedule(const UpdateRule &rule) {
  if (rule.logWarmup && rule.warmupSteps == 0)
    return fail("expected 'scheduler.warmup_steps' with "
                "'scheduler.warmup=log', found none");
  if (rule.schedule == Schedule::Constant)
    return rule.totalSteps
               ? fail("expected 'scheduler.type=linear' with "
                      "'scheduler.total_steps': a constant schedule has no end")
               : Error::success();
  if (!rule.totalSteps && rule.warmupSteps == 0)
    return fail("expected 'scheduler.warmup_steps' or 'scheduler.total_steps' "
                "with 'scheduler.type=linear', found neither");
  if (rule.totalSteps && *rule.totalSteps <= rule.warmupSteps)
    return fail("expected more 'scheduler.total_steps' than the " +
                Twine(rule.warmupSteps) +
                " of 'scheduler.warmup_steps', "
                "found " +
                Twine(*rule.totalSteps));
  return Error::success();
}

Expected<UpdateRule>
accel::autodiff::parseUpdateRule(StringRef optimizer,
                                 ArrayRef<std::string> settings) {
  UpdateRule rule;
  // PyTorch's spelling, AdamW, is as good.
  std::string lower = optimizer.lower();
  StringRef name = lower.empty() ? "adamw" : StringRef(lower);
  auto kind = StringSwitch<std::optional<Optimizer>>(name)
                  .Case("sgd", Optimizer::SGD)
                  .Case("adam", Optimizer::Adam)
                  .Case("adamw", Optimizer::AdamW)
                  .Default(std::nullopt);
  if (!kind)
    return fail("expected --optimizer=adamw, adam or sgd, found '" + optimizer +
                "'");
  rule.optimizer = *kind;
  rule.weightDecay = *kind == Optimizer::AdamW ? 0.01 : 0;
  unsigned reader = *kind == Optimizer::SGD    ? kSGD
                    : *kind == Optimizer::Adam ? kAdam
                                               : kAdamW;
  StringSet<> seen;
  auto read = [&](StringRef setting) -> Error {
    auto [keyName, value] = setting.split('=');
    if (keyName.empty() || value.empty())
      return fail("expected --set key=value, found '" + setting + "'");
    const Key *key = findKey(keyName);
    if (!key)
      return fail("unknown key '" + keyName + "' of --set, the nearest is '" +
                  nearestKey(keyName) + "'");
    if (!seen.insert(keyName).second)
      return fail("'" + keyName + "' is set twice");
    if (!(key->readers & reader))
      return fail("optimizer '" + name + "' does not read '" + keyName + "'");
    return key->read({keyName, value, rule});
  };
  Error errors = Error::success();
  for (StringRef setting : settings)
    errors = joinErrors(std::move(errors), read(setting));
  if (errors)
    return std::move(errors);
  if (Error error = checkSchedule(rule))
    return error;
  return rule;
}
