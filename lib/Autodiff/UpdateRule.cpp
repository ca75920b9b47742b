// The table of `--set` keys that the update reads.

#include "ScheduleRule.h"

#include "lib/Names/Nearest.h"
#include "llvm/ADT/STLExtras.h"
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

/// What all optimizers read.
struct Key {
  StringLiteral name;
  unsigned schedules; ///< beside which
  Error (*read)(const Setting &);
};
} // namespace

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
    {"optimizer.no_decay", kAny,
     [](const Setting &s) { return s.patterns(s.rule.noDecay, kVectors); }},
    {"optimizer.decay", kAny,
     [](const Setting &s) { return s.patterns(s.rule.decay, kQkNorms); }},
    {"gradient_clipping", kAny, readClipping},
    {"scheduler.type", kAny, readScheduleType},
    {"scheduler.warmup", kAny, readWarmup},
    {"scheduler.warmup_steps", kAny,
     [](const Setting &s) { return s.count(s.rule.warmupSteps, 0); }},
    {"scheduler.total_steps", kFalling | kWarmupDecay | kWarmupCosine,
     [](const Setting &s) {
       int64_t steps = 0;
       Error error = s.count(steps, 1);
       s.rule.totalSteps = steps;
       return error;
     }},
    {"scheduler.warmup_min_lr", kAny & ~kWarmupCosine,
     [](const Setting &s) { return s.number(s.rule.warmupMinLr); }},
    {"scheduler.min_lr", kFalling,
     [](const Setting &s) { return s.number(s.rule.minLr); }},
    {"scheduler.warmup_min_ratio", kWarmupCosine,
     [](const Setting &s) { return s.number(s.rule.warmupMinRatio); }},
    {"scheduler.cos_min_ratio", kWarmupCosine,
     [](const Setting &s) { return s.number(s.rule.cosMinRatio); }},
    {"seed", kAny, [](const Setting &s) { return s.count(s.rule.seed, 0); }},
};

static const Key *findKey(StringRef name) {
  const Key *found =
      find_if(kKeys, [&](const Key &key) { return key.name == name; });
  return found == std::end(kKeys) ? nullptr : found;
}

/// The key without `optimizer.`; empty for other keys.
static StringRef withoutPrefix(StringRef key) {
  return key.consume_front("optimizer.") ? key : "";
}

static std::string suggestKey(StringRef name) {
  std::vector<std::string> keys;
  for (const Key &key : kKeys)
    keys.push_back(key.name.str());
  for (const OptimizerKind &kind : optimizerKinds())
    for (const Hyperparameter &one : kind.hyperparameters)
      keys.push_back("optimizer." + one.name.str());
  SmallVector<StringRef> names(keys.begin(), keys.end());
  return accel::suggestName(name, names);
}

static bool isHyperparameter(StringRef name) {
  return any_of(optimizerKinds(), [&](const OptimizerKind &kind) {
    return kind.find(name) != nullptr;
  });
}

bool accel::autodiff::isReadBy(StringRef name, StringRef optimizer,
                               StringRef schedule) {
  if (isGroupKey(name))
    return true;
  std::optional<Schedule> course = parseSchedule(schedule);
  if (const Key *key = findKey(name))
    return !course || (key->schedules & bit(*course));
  const OptimizerKind *kind = findOptimizer(optimizer);
  StringRef parameter = withoutPrefix(name);
  return kind ? kind->find(parameter) != nullptr : isHyperparameter(parameter);
}

bool accel::autodiff::isGroupKey(StringRef key) {
  return key.starts_with("groups[");
}

/// Numbers of the same name stay as they are.
static OptimizerRule changeKind(const OptimizerRule &rule,
                                const OptimizerKind &kind) {
  OptimizerRule own{&kind, kind.getDefaults()};
  for (const Hyperparameter &one : kind.hyperparameters) {
    const Hyperparameter *same = rule.kind->find(one.name);
    if (!same || same->type != one.type)
      continue;
    if (one.type == Hyperparameter::Type::Betas)
      for (StringRef beta : {"beta1", "beta2"})
        own.values.set(beta, rule.values.get(beta));
    else
      own.values.set(one.name, rule.values.get(one.name));
  }
  return own;
}

OptimizerRule
accel::autodiff::applyGroups(const OptimizerRule &rule,
                             ArrayRef<const GroupSetting *> settings) {
  OptimizerRule own = rule;
  for (const GroupSetting *setting : settings)
    if (setting->key == kGroupType)
      own = changeKind(rule, *findOptimizer(setting->value));
  for (const GroupSetting *setting : settings)
    if (const Hyperparameter *one = own.kind->find(setting->key))
      cantFail(
          readHyperparameter(*one, setting->key, setting->value, own.values));
  return own;
}

OptimizerRule accel::autodiff::getRuleOfOthers(const OptimizerRule &rule) {
  StringRef others = rule.kind->ofOthers;
  return others.empty() ? rule : changeKind(rule, *findOptimizer(others));
}

/// Checks `groups[PATTERN].KEY`. What its optimizer reads follows from all
/// settings of a parameter, so that the key is one of some optimizer's here.
static Error readGroup(StringRef whole, StringRef value, UpdateRule &rule) {
  StringRef inner = whole;
  (void)inner.consume_front("groups[");
  auto [pattern, key] = inner.rsplit("].");
  Expected<GlobPattern> glob = GlobPattern::create(pattern);
  bool isPattern = !pattern.empty() && static_cast<bool>(glob);
  consumeError(glob.takeError());
  if (!isPattern || key.empty())
    return fail("expected groups[PATTERN].KEY with a glob pattern, found '" +
                whole + "'");
  rule.groups.push_back({pattern.str(), key.str(), value.str()});
  if (key == kGroupType)
    return findOptimizer(value)
               ? Error::success()
               : fail("expected " + joinOptimizers() + " as '" + whole +
                      "', found '" + value + "'");
  for (const OptimizerKind &kind : optimizerKinds())
    if (const Hyperparameter *one = kind.find(key)) {
      Hyperparameters values = kind.getDefaults();
      return readHyperparameter(*one, whole, value, values);
    }
  SmallVector<StringRef> names = {kGroupType};
  for (const OptimizerKind &kind : optimizerKinds())
    for (const Hyperparameter &one : kind.hyperparameters)
      names.push_back(one.name);
  return fail("unknown key '" + key + "' of groups[" + pattern + "]" +
              accel::suggestName(key, names));
}

static Error checkSchedule(UpdateRule &rule, const StringSet<> &seen) {
  for (const Key &key : kKeys)
    if (seen.contains(key.name) && !(key.schedules & bit(rule.schedule)))
      return fail("expected 'scheduler.type' " + joinNames(key.schedules) +
                  " with '" + key.name + "', found " +
                  stringifySchedule(rule.schedule));
  return completeSchedule(rule, seen);
}

Error accel::autodiff::checkNumbers(const OptimizerRule &rule) {
  if (rule.kind->name == "sgd" && rule.values.isSet("nesterov") &&
      (!rule.values.isSet("momentum") || rule.values.isSet("dampening")))
    return fail("expected 'momentum' above 0 and no 'dampening' with "
                "'nesterov' of optimizer 'sgd'");
  return Error::success();
}

Expected<UpdateRule>
accel::autodiff::parseUpdateRule(StringRef optimizer,
                                 ArrayRef<std::string> settings) {
  UpdateRule rule;
  if (!optimizer.empty()) {
    const OptimizerKind *kind = findOptimizer(optimizer);
    if (!kind)
      return fail("expected --optimizer=" + joinOptimizers() + ", found '" +
                  optimizer + "'");
    rule.optimizer = {kind, kind->getDefaults()};
  }
  const OptimizerKind &kind = *rule.optimizer.kind;
  StringSet<> seen;
  auto read = [&](StringRef setting) -> Error {
    auto [name, value] = setting.split('=');
    if (name.empty() || value.empty())
      return fail("expected --set key=value, found '" + setting + "'");
    const Key *key = findKey(name);
    StringRef parameter = withoutPrefix(name);
    if (!key && !isGroupKey(name) && !isHyperparameter(parameter))
      return fail("unknown key '" + name + "' of --set" + suggestKey(name));
    if (!seen.insert(name).second)
      return fail("'" + name + "' is set twice");
    if (key)
      return key->read({name, value, rule});
    if (isGroupKey(name))
      return readGroup(name, value, rule);
    const Hyperparameter *one = kind.find(parameter);
    if (!one)
      return fail("optimizer '" + kind.name + "' does not read '" + name + "'");
    return readHyperparameter(*one, name, value, rule.optimizer.values);
  };
  Error errors = Error::success();
  for (StringRef setting : settings)
    errors = joinErrors(std::move(errors), read(setting));
  if (!errors)
    errors = checkNumbers(rule.optimizer);
  if (errors)
    return std::move(errors);
  if (Error error = checkSchedule(rule, seen))
    return error;
  return rule;
}
