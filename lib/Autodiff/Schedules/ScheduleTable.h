// The schedules by name, and the keys of each: what `--set scheduler.type` and
// `--set scheduler.KEY` can say.

#ifndef ACCEL_LIB_AUTODIFF_SCHEDULES_SCHEDULETABLE_H
#define ACCEL_LIB_AUTODIFF_SCHEDULES_SCHEDULETABLE_H

#include "lib/Autodiff/ReadValue.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace accel::autodiff {

class Number;
struct Course;
struct ScheduleKind;

/// A number that a schedule reads.
struct ScheduleKey {
  using Type = ValueType;
  llvm::StringLiteral name; ///< `scheduler.NAME`
  Type type;
  std::optional<double> first = {}; ///< where nothing is said; none: nothing
  bool isRequired = false;
  int64_t least = 1;
  llvm::ArrayRef<llvm::StringLiteral> words = {};
};

/// What a schedule's keys come to.
class ScheduleValues {
public:
  bool has(llvm::StringRef name) const { return values.count(name.str()) != 0; }
  /// Whether it is said, and not a default.
  bool isSaid(llvm::StringRef name) const { return said.count(name.str()); }
  /// Requires that it has it.
  double get(llvm::StringRef name) const;
  double getOr(llvm::StringRef name, double other) const {
    return has(name) ? get(name) : other;
  }
  bool isSet(llvm::StringRef name) const { return getOr(name, 0) != 0; }
  /// Of a key of several numbers.
  llvm::ArrayRef<double> list(llvm::StringRef name) const;

  void say(llvm::StringRef name, std::vector<double> numbers) {
    values[name.str()] = std::move(numbers);
    said.insert(name.str());
  }
  void setDefault(llvm::StringRef name, double number) {
    values.emplace(name.str(), std::vector<double>{number});
  }
  /// In the order of their names.
  const std::map<std::string, std::vector<double>> &all() const {
    return values;
  }

private:
  std::map<std::string, std::vector<double>> values;
  std::set<std::string> said;
};

/// A schedule and its numbers.
struct ScheduleRule {
  const ScheduleKind *kind = nullptr;
  ScheduleValues values;
  std::vector<ScheduleRule> parts; ///< of ChainedScheduler and SequentialLR
};

/// Which number a step has for a schedule.
enum class Clock {
  /// Finished steps: the first step has 0 (PyTorch, transformers, Megatron-LM).
  Finished,
  /// That of DeepSpeed's WarmupLR and its kin, which set the rate when they are
  /// made, and again after the first step, which is 0: one less, at least 0.
  Late
};

/// How the rates of groups follow from `groups[PATTERN].lr`.
enum class GroupRates {
  InProportion, ///< to optimizer.lr
  Own           ///< the schedule of that rate
};

/// Refuses numbers that do not go together; `lr`: of all parameters.
using CheckSchedule = llvm::Error (*)(ScheduleRule &rule, double lr);
/// Builds a number of a step: rank-0 f64.
using BuildCourse = Number (*)(const Course &course);

/// A schedule as users name it.
struct ScheduleKind {
  llvm::StringLiteral name;
  llvm::StringLiteral whose; ///< keys and defaults these are
  llvm::ArrayRef<ScheduleKey> keys;
  BuildCourse rate;
  CheckSchedule check = nullptr;
  Clock clock = Clock::Finished;
  GroupRates groups = GroupRates::InProportion;
  /// The first momentum (momentum, or beta1) of each step, where
  /// `cycle_momentum` says so; null for schedules of the rate alone.
  BuildCourse momentum = nullptr;
  /// Whether the rate is optimizer.lr times a number that depends on the step
  /// alone, so that schedules can be chained.
  bool isFactor = false;
  /// Whether the rate is not made of optimizer.lr.
  bool setsRate = false;

  /// Null if it has none of that name.
  const ScheduleKey *find(llvm::StringRef key) const;
};

llvm::ArrayRef<ScheduleKind> scheduleKinds();
/// By its name; null if there is none.
const ScheduleKind *findSchedule(llvm::StringRef name);
/// Why there is no such schedule: that it is unknown, or what it depends on,
/// and what to say in its place. `key`: what was to be one.
llvm::Error refuseSchedule(llvm::StringRef key, llvm::StringRef name);
/// "linear, cosine or WSD": those that read it.
std::string joinReaders(llvm::StringRef key);
/// Whether some schedule reads `scheduler.KEY`.
bool isScheduleKey(llvm::StringRef key);

/// `schedulers[1].gamma` as 1 and `gamma`; none if it is spelt otherwise.
std::optional<std::pair<unsigned, llvm::StringRef>>
splitPartKey(llvm::StringRef key);

/// A setting of schedules as it was said.
struct ScheduleSetting {
  std::string key, value;
};

/// Makes the rule of `scheduler.KEY` and `schedulers[I].KEY` settings. Fails
/// with one sentence for each that the schedule does not read or that is out of
/// range, for what is missing, and for numbers that do not go together.
llvm::Expected<ScheduleRule> readSchedule(llvm::ArrayRef<ScheduleSetting> said,
                                          double lr);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_SCHEDULES_SCHEDULETABLE_H
