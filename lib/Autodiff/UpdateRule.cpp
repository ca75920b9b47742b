// The table of `--set` keys that the update reads.

#include "ScheduleRule.h"

#include "lib/Names/Nearest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/GlobPattern.h"

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
  /// Patterns, and `word`.
  Error patterns(std::vector<std::string> &into, StringRef word) const {
    SmallVector<StringRef> parts;
    value.split(parts, ',');
    for (StringRef part : parts) {
      Expected<GlobPattern> glob = GlobPattern::create(part);
      if (!part.empty() && glob) {
        into.push_back(part.str());
        continue;
      }
      consumeError(glob.takeError());
      return expected("'" + word + "' and glob patterns, separated by commas,");
    }
    return Error::success();
  }
};

enum Optimizers : unsigned { kSGD = 1, kAdam = 2, kAdamW = 4, kAll = 7 };

struct Key {
  StringLiteral name;
  /// Which optimizers read it, and beside which schedules.
  unsigned optimizers, schedules;
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
  std::optional<Schedule> type = parseSchedule(setting.value);
  if (!type)
    return setting.expected(joinNames(kAny));
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
    {"optimizer.lr", kAll, kAny,
     [](const Setting &s) { return s.number(s.rule.lr); }},
    {"optimizer.betas", kAdam | kAdamW, kAny, readBetas},
    {"optimizer.eps", kAdam | kAdamW, kAny,
     [](const Setting &s) { return s.number(s.rule.eps); }},
    {"optimizer.weight_decay", kAll, kAny,
     [](const Setting &s) { return s.number(s.rule.weightDecay); }},
    {"optimizer.no_decay", kAll, kAny,
     [](const Setting &s) { return s.patterns(s.rule.noDecay, kVectors); }},
    {"optimizer.decay", kAll, kAny,
     [](const Setting &s) { return s.patterns(s.rule.decay, kQkNorms); }},
    {"optimizer.momentum", kSGD, kAny,
     [](const Setting &s) { return s.number(s.rule.momentum); }},
    {"gradient_clipping", kAll, kAny, readClipping},
    {"scheduler.type", kAll, kAny, readScheduleType},
    {"scheduler.warmup", kAll, kAny, readWarmup},
    {"scheduler.warmup_steps", kAll, kAny,
     [](const Setting &s) { return s.count(s.rule.warmupSteps, 0); }},
    {"scheduler.total_steps", kAll, kFalling | kWarmupDecay | kWarmupCosine,
     [](const Setting &s) {
       int64_t steps = 0;
       Error error = s.count(steps, 1);
       s.rule.totalSteps = steps;
       return error;
     }},
    {"scheduler.warmup_min_lr", kAll, kAny & ~kWarmupCosine,
     [](const Setting &s) { return s.number(s.rule.warmupMinLr); }},
    {"scheduler.min_lr", kAll, kFalling,
     [](const Setting &s) { return s.number(s.rule.minLr); }},
    {"scheduler.warmup_min_ratio", kAll, kWarmupCosine,
     [](const Setting &s) { return s.number(s.rule.warmupMinRatio); }},
    {"scheduler.cos_min_ratio", kAll, kWarmupCosine,
     [](const Setting &s) { return s.number(s.rule.cosMinRatio); }},
    {"seed", kAll, kAny,
     [](const Setting &s) { return s.count(s.rule.seed, 0); }},
};

static const Key *findKey(StringRef name) {
  const Key *found =
      find_if(kKeys, [&](const Key &key) { return key.name == name; });
  return found == std::end(kKeys) ? nullptr : found;
}

static std::string suggestKey(StringRef name) {
  SmallVector<StringRef> names;
  for (const Key &key : kKeys)
    names.push_back(key.name);
  return accel::suggestName(name, names);
}

static std::optional<Optimizer> parseOptimizer(StringRef name) {
  return StringSwitch<std::optional<Optimizer>>(name)
      .Case("sgd", Optimizer::SGD)
      .Case("adam", Optimizer::Adam)
      .Case("adamw", Optimizer::AdamW)
      .Default(std::nullopt);
}

static unsigned bitOf(Optimizer optimizer) {
  return optimizer == Optimizer::SGD    ? kSGD
         : optimizer == Optimizer::Adam ? kAdam
                                        : kAdamW;
}

bool accel::autodiff::isReadBy(StringRef name, StringRef optimizer,
                               StringRef schedule) {
  const Key *key = findKey(name);
  if (!key)
    return false;
  std::optional<Optimizer> kind = parseOptimizer(optimizer.lower());
  std::optional<Schedule> course = parseSchedule(schedule);
  return (!kind || (key->optimizers & bitOf(*kind))) &&
         (!course || (key->schedules & bit(*course)));
}

static Error checkSchedule(UpdateRule &rule, const StringSet<> &seen) {
  for (const Key &key : kKeys)
    if (seen.contains(key.name) && !(key.schedules & bit(rule.schedule)))
      return fail("expected 'scheduler.type' " + joinNames(key.schedules) +
                  " with '" + key.name + "', found " +
                  stringifySchedule(rule.schedule));
  return completeSchedule(rule, seen);
}

Expected<UpdateRule>
accel::autodiff::parseUpdateRule(StringRef optimizer,
                                 ArrayRef<std::string> settings) {
  UpdateRule rule;
  // PyTorch's spelling, AdamW, is as good.
  std::string lower = optimizer.lower();
  StringRef name = lower.empty() ? "adamw" : StringRef(lower);
  std::optional<Optimizer> kind = parseOptimizer(name);
  if (!kind)
    return fail("expected --optimizer=adamw, adam or sgd, found '" + optimizer +
                "'");
  rule.optimizer = *kind;
  rule.weightDecay = *kind == Optimizer::AdamW ? 0.01 : 0;
  StringSet<> seen;
  auto read = [&](StringRef setting) -> Error {
    auto [keyName, value] = setting.split('=');
    if (keyName.empty() || value.empty())
      return fail("expected --set key=value, found '" + setting + "'");
    const Key *key = findKey(keyName);
    if (!key)
      return fail("unknown key '" + keyName + "' of --set" +
                  suggestKey(keyName));
    if (!seen.insert(keyName).second)
      return fail("'" + keyName + "' is set twice");
    if (!(key->optimizers & bitOf(*kind)))
      return fail("optimizer '" + name + "' does not read '" + keyName + "'");
    return key->read({keyName, value, rule});
  };
  Error errors = Error::success();
  for (StringRef setting : settings)
    errors = joinErrors(std::move(errors), read(setting));
  if (errors)
    return std::move(errors);
  if (Error error = checkSchedule(rule, seen))
    return error;
  return rule;
}
