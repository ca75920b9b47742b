// Reads what is said of a schedule.

#include "lib/Autodiff/Schedules/Course.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace accel::autodiff;

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
    Expected<std::vector<double>> numbers =
        readValue({one->type, one->words, one->least}, whole, value);
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
