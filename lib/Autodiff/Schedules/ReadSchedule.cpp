// Reads what is said of a schedule.

#include "lib/Autodiff/Schedules/Course.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace llvm;
using namespace accel::autodiff;
using Type = ScheduleKey::Type;

static Error expected(const Twine &what, StringRef key, StringRef value) {
  return failSchedule("expected " + what + " as '" + key + "', found '" +
                      value + "'");
}

static Expected<std::vector<double>> readCounts(StringRef key,
                                                StringRef value) {
  SmallVector<StringRef> parts;
  value.split(parts, ',');
  std::vector<double> numbers;
  for (StringRef part : parts) {
    int64_t number;
    if (part.getAsInteger(10, number) || number < 1 ||
        (!numbers.empty() && double(number) <= numbers.back()))
      return expected("ascending integers of at least 1 like 30,80", key,
                      value);
    numbers.push_back(double(number));
  }
  return numbers;
}

static Expected<std::vector<double>> readWord(const ScheduleKey &one,
                                              StringRef key, StringRef value) {
  static constexpr StringLiteral kFlags[] = {"false", "true"};
  ArrayRef<StringLiteral> words =
      one.type == Type::Flag ? ArrayRef<StringLiteral>(kFlags) : one.words;
  const StringLiteral *found = find(words, value);
  if (found == words.end())
    return expected(join(words, " or "), key, value);
  return std::vector<double>{double(found - words.begin())};
}

static Expected<std::vector<double>>
readNumber(const ScheduleKey &one, StringRef key, StringRef value) {
  double number = 0;
  bool isNumber = !value.getAsDouble(number) && std::isfinite(number);
  bool fits = false;
  std::string what;
  switch (one.type) {
  case Type::Count: {
    int64_t whole;
    isNumber = !value.getAsInteger(10, whole);
    number = double(whole);
    fits = isNumber && whole >= one.least;
    what = ("an integer of at least " + Twine(one.least)).str();
    break;
  }
  case Type::NonNegative:
    fits = number >= 0;
    what = "a number of at least 0";
    break;
  case Type::Positive:
    fits = number > 0;
    what = "a number above 0";
    break;
  case Type::Share:
    fits = number >= 0 && number <= 1;
    what = "a number from 0 to 1";
    break;
  case Type::Momentum:
    fits = number >= 0 && number < 1;
    what = "a number in [0, 1)";
    break;
  case Type::Signed:
    fits = true;
    what = "a number";
    break;
  case Type::Flag:
  case Type::Word:
  case Type::Counts:
    llvm_unreachable("read elsewhere");
  }
  if (!isNumber || !fits)
    return expected(what, key, value);
  return std::vector<double>{number};
}

static Expected<std::vector<double>> read(const ScheduleKey &one, StringRef key,
                                          StringRef value) {
  switch (one.type) {
  case Type::Counts:
    return readCounts(key, value);
  case Type::Flag:
  case Type::Word:
    return readWord(one, key, value);
  default:
    return readNumber(one, key, value);
  }
}

std::optional<std::pair<unsigned, StringRef>>
accel::autodiff::splitPartKey(StringRef key) {
  unsigned index;
  if (!key.consume_front("schedulers[") || key.consumeInteger(10, index) ||
      !key.consume_front("].") || key.empty() || index >= 100)
    return std::nullopt;
  return std::make_pair(index, key);
}

/// Of one schedule, whose keys begin with `prefix`.
static Expected<ScheduleRule> readOne(StringRef prefix, StringRef otherwise,
                                      ArrayRef<ScheduleSetting> said) {
  StringRef type = otherwise;
  for (const ScheduleSetting &one : said)
    if (one.key == "type")
      type = one.value;
  std::string typeKey = (prefix + "type").str();
  if (type.empty())
    return failSchedule("expected '" + typeKey + "' with '" + prefix +
                        said.front().key + "', found none");
  ScheduleRule rule;
  rule.kind = findSchedule(type);
  if (!rule.kind)
    return refuseSchedule(typeKey, type);
  Error errors = Error::success();
  auto add = [&](Error error) {
    errors = joinErrors(std::move(errors), std::move(error));
  };
  for (auto &[key, value] : said) {
    if (key == "type")
      continue;
    std::string whole = prefix.str() + key;
    const ScheduleKey *one = rule.kind->find(key);
    if (!one) {
      add(failSchedule("expected '" + typeKey + "' " + joinReaders(key) +
                       " with '" + whole + "', found " + type));
      continue;
    }
    Expected<std::vector<double>> numbers = read(*one, whole, value);
    if (numbers)
      rule.values.say(key, std::move(*numbers));
    else
      add(numbers.takeError());
  }
  for (const ScheduleKey &key : rule.kind->keys)
    if (!rule.values.has(key.name) && key.first)
      rule.values.setDefault(key.name, *key.first);
  // What cannot be read is not missing.
  if (errors)
    return std::move(errors);
  for (const ScheduleKey &key : rule.kind->keys)
    if (key.isRequired && !rule.values.has(key.name))
      add(failSchedule("expected '" + prefix + key.name + "' with '" + typeKey +
                       "=" + type + "', found none"));
  if (errors)
    return std::move(errors);
  return rule;
}

Expected<ScheduleRule>
accel::autodiff::readSchedule(ArrayRef<ScheduleSetting> said, double lr) {
  std::vector<ScheduleSetting> own;
  std::map<unsigned, std::vector<ScheduleSetting>> ofParts;
  for (const ScheduleSetting &one : said) {
    StringRef key = one.key;
    if (key.consume_front("scheduler."))
      own.push_back({key.str(), one.value});
    else if (auto part = splitPartKey(key))
      ofParts[part->first].push_back({part->second.str(), one.value});
  }
  Expected<ScheduleRule> rule = readOne("scheduler.", "constant", own);
  if (!rule)
    return rule;
  StringRef type = rule->kind->name;
  if (!ofParts.empty() && type != "SequentialLR" && type != "ChainedScheduler")
    return failSchedule("expected 'scheduler.type' ChainedScheduler or "
                        "SequentialLR with 'schedulers[" +
                        Twine(ofParts.begin()->first) + "]', found " + type);
  for (auto &[index, settings] : ofParts) {
    if (index != rule->parts.size())
      return failSchedule("expected 'schedulers[" + Twine(rule->parts.size()) +
                          "].type' before 'schedulers[" + Twine(index) +
                          "]', found none");
    std::string prefix = ("schedulers[" + Twine(index) + "].").str();
    Expected<ScheduleRule> part = readOne(prefix, "", settings);
    if (!part)
      return part;
    if (part->kind->check)
      if (Error error = part->kind->check(*part, lr))
        return std::move(error);
    rule->parts.push_back(std::move(*part));
  }
  if (rule->kind->check)
    if (Error error = rule->kind->check(*rule, lr))
      return std::move(error);
  return rule;
}
