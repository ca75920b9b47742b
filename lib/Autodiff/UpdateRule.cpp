// The table of `--set` keys that the update reads.

#include "DrivenRule.h"

#include "lib/Autodiff/OptionError.h"
#include "lib/Names/Nearest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/GlobPattern.h"

#include <cmath>

using namespace llvm;
using namespace accel::autodiff;

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

/// What all optimizers read, beside all schedules.
struct Key {
  StringLiteral name;
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

static Error readIncrease(const Setting &setting) {
  if (setting.value != "constant" && setting.value != "linear" &&
      setting.value != "cosine")
    return setting.expected("constant, linear or cosine");
  return Error::success();
}

/// Of those of weight decay, which `readDecayCourse` puts together.
static Error readAnyNumber(const Setting &setting) {
  double number;
  return setting.number(number);
}
static Error readSteps(const Setting &setting) {
  int64_t steps;
  return setting.count(steps, 1);
}

static Error readAverageDecay(const Setting &setting) {
  double decay;
  if (setting.value.getAsDouble(decay) || !(decay >= 0 && decay < 1))
    return setting.expected("a number in [0, 1)");
  setting.rule.averageDecay = decay;
  return Error::success();
}

static Error readEvaluates(const Setting &setting) {
  if (setting.value != "true" && setting.value != "false")
    return setting.expected("true or false");
  setting.rule.evaluatesAverages = setting.value == "true";
  return Error::success();
}

static constexpr Key kKeys[] = {
    {"optimizer.no_decay",
     [](const Setting &s) { return s.patterns(s.rule.noDecay, kVectors); }},
    {"optimizer.decay",
     [](const Setting &s) { return s.patterns(s.rule.decay, kQkNorms); }},
    {"gradient_clipping", readClipping},
    {kStartDecay, readAnyNumber},
    {kEndDecay, readAnyNumber},
    {kIncrease, readIncrease},
    {kIncreaseSteps, readSteps},
    {"ema.decay", readAverageDecay},
    {"ema.evaluate", readEvaluates},
    {"seed", [](const Setting &s) { return s.count(s.rule.seed, 0); }},
};

/// `scheduler.type`, or a key of some schedule, or of a part of one.
static bool isOfSchedule(StringRef name) {
  if (splitPartKey(name))
    return true;
  return name.consume_front("scheduler.") &&
         (name == "type" || isScheduleKey(name));
}

/// The key without `scaler.`; empty for other keys.
static StringRef ofScaler(StringRef key) {
  return key.consume_front("scaler.") ? key : "";
}

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
  keys.emplace_back("scheduler.type");
  for (StringRef key : scalerKeys())
    keys.push_back(("scaler." + key).str());
  for (const ScheduleKind &kind : scheduleKinds())
    for (const ScheduleKey &one : kind.keys)
      keys.push_back("scheduler." + one.name.str());
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
  if (isGroupKey(name) || findKey(name) || !ofScaler(name).empty())
    return true;
  if (isOfSchedule(name)) {
    const ScheduleKind *course = findSchedule(schedule);
    if (!course || name == "scheduler.type")
      return true;
    if (splitPartKey(name))
      return course->name == "ChainedScheduler" ||
             course->name == "SequentialLR";
    return course->find(name.drop_front(StringRef("scheduler.").size()));
  }
  const OptimizerKind *kind = findOptimizer(optimizer);
  StringRef parameter = withoutPrefix(name);
  return kind ? kind->find(parameter) != nullptr : isHyperparameter(parameter);
}

bool accel::autodiff::isGroupKey(StringRef key) {
  return key.starts_with("groups[");
}

/// Numbers of the same name stay as they are; the rate of those that another
/// optimizer has beside this one may be said by itself.
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
  if (kind.name == rule.kind->ofOthers && rule.values.isSet("adam_lr"))
    own.values.set("lr", rule.values.get("adam_lr"));
  return own;
}

/// `groups[PATTERN].min_lr`; none: it is no rate.
static std::optional<double> readLeast(StringRef value) {
  double least;
  if (value.getAsDouble(least) || !std::isfinite(least) || least < 0)
    return std::nullopt;
  return least;
}

OptimizerRule
accel::autodiff::applyGroups(const OptimizerRule &rule,
                             ArrayRef<const GroupSetting *> settings) {
  OptimizerRule own = rule;
  for (const GroupSetting *setting : settings)
    if (setting->key == kGroupType)
      own = changeKind(rule, *findOptimizer(setting->value));
  for (const GroupSetting *setting : settings) {
    if (setting->key == kGroupLeast)
      own.leastLr = readLeast(setting->value);
    if (const Hyperparameter *one = own.kind->find(setting->key))
      cantFail(
          readHyperparameter(*one, setting->key, setting->value, own.values));
  }
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
  if (key == kGroupLeast)
    return readLeast(value) ? Error::success()
                            : fail("expected a number of at least 0 as '" +
                                   whole + "', found '" + value + "'");
  for (const OptimizerKind &kind : optimizerKinds())
    if (const Hyperparameter *one = kind.find(key)) {
      Hyperparameters values = kind.getDefaults();
      return readHyperparameter(*one, whole, value, values);
    }
  SmallVector<StringRef> names = {kGroupType, kGroupLeast};
  for (const OptimizerKind &kind : optimizerKinds())
    for (const Hyperparameter &one : kind.hyperparameters)
      names.push_back(one.name);
  return fail("unknown key '" + key + "' of groups[" + pattern + "]" +
              accel::suggestName(key, names));
}

/// Fails where a group has a least rate and the schedule none.
static Error checkLeast(const UpdateRule &rule) {
  for (const GroupSetting &setting : rule.groups)
    if (setting.key == kGroupLeast && !rule.schedule.kind->find("min_lr"))
      return fail("expected 'scheduler.type' " + joinReaders("min_lr") +
                  " with groups[" + setting.pattern + "].min_lr, found " +
                  rule.schedule.kind->name);
  return Error::success();
}

Expected<OptimizerRule>
accel::autodiff::withFp8Moments(const OptimizerRule &rule) {
  StringRef coded = StringSwitch<StringRef>(rule.kind->name)
                        .Cases({"adamw", "adamw_fp8"}, "adamw_fp8")
                        .Cases({"adam", "adam_fp8"}, "adam_fp8")
                        .Default("");
  if (coded.empty())
    return fail("expected adamw or adam with 'fp8.recipe=msamp_o2', whose "
                "moments are codes (fp8.recipe=msamp_o1 has any optimizer), "
                "found '" +
                rule.kind->name + "' as the optimizer");
  if (rule.kind->find("amsgrad") && rule.values.isSet("amsgrad"))
    return fail("expected no 'amsgrad' with 'fp8.recipe=msamp_o2', which has "
                "no codes for its maxima (fp8.recipe=msamp_o1 has none to "
                "need), found it in the optimizer");
  OptimizerRule made = rule;
  made.kind = findOptimizer(coded);
  return made;
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
  StringMap<StringRef> seen;
  std::vector<ScheduleSetting> ofSchedule;
  std::vector<std::pair<StringRef, StringRef>> scaling;
  auto read = [&](StringRef setting) -> Error {
    auto [name, value] = setting.split('=');
    if (name.empty() || value.empty())
      return fail("expected --set key=value, found '" + setting + "'");
    if (StringRef own = ofScaler(name); !own.empty()) {
      scaling.push_back({own, value});
      return Error::success();
    }
    const Key *key = findKey(name);
    StringRef parameter = withoutPrefix(name);
    if (!key && !isGroupKey(name) && !isOfSchedule(name) &&
        !isHyperparameter(parameter))
      return fail("unknown key '" + name + "' of --set" + suggestKey(name));
    if (!seen.try_emplace(name, value).second)
      return fail("'" + name + "' is set twice");
    if (key)
      return key->read({name, value, rule});
    if (isGroupKey(name))
      return readGroup(name, value, rule);
    if (isOfSchedule(name)) {
      ofSchedule.push_back({name.str(), value.str()});
      return Error::success();
    }
    const Hyperparameter *one = kind.find(parameter);
    if (!one)
      return fail("optimizer '" + kind.name + "' does not read '" + name + "'");
    return readHyperparameter(*one, name, value, rule.optimizer.values);
  };
  Error errors = Error::success();
  for (StringRef setting : settings)
    errors = joinErrors(std::move(errors), read(setting));
  Expected<ScalerRule> scaler = parseScalerRule(scaling);
  if (scaler)
    rule.scaler = *scaler;
  else
    errors = joinErrors(std::move(errors), scaler.takeError());
  if (errors)
    return std::move(errors);
  Expected<ScheduleRule> schedule =
      readSchedule(ofSchedule, rule.optimizer.lr());
  if (!schedule)
    return schedule.takeError();
  rule.schedule = std::move(*schedule);
  setDriven(rule.schedule, rule.optimizer);
  errors = checkNumbers(rule.optimizer);
  if (!errors)
    errors = checkLeast(rule);
  if (!errors && rule.evaluatesAverages && !rule.averageDecay)
    errors = fail("expected 'ema.decay' with 'ema.evaluate=true', found none");
  if (!errors)
    errors = completeDriven(rule, seen);
  if (errors)
    return std::move(errors);
  return rule;
}
