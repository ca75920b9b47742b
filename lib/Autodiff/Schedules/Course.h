// What schedules are written in: arithmetic on numbers of a step, as the
// originals' formulas have it. Private to the folder and to Schedule.cpp.

#ifndef ACCEL_LIB_AUTODIFF_SCHEDULES_COURSE_H
#define ACCEL_LIB_AUTODIFF_SCHEDULES_COURSE_H

#include "lib/Autodiff/NNBuilder.h"
#include "lib/Autodiff/Schedules/ScheduleTable.h"

namespace accel::autodiff {

/// Rank-0 f64 in the program that is built; what is known folds.
class Number {
public:
  Number(const NNBuilder &build, mlir::Value value)
      : build(&build), value(value) {}
  mlir::Value get() const { return value; }
  const NNBuilder &builder() const { return *build; }
  /// A number that is known, beside this one.
  Number known(double number) const { return {*build, build->f64(number)}; }

private:
  const NNBuilder *build;
  mlir::Value value;
};

Number operator+(Number a, Number b);
Number operator-(Number a, Number b);
Number operator*(Number a, Number b);
Number operator/(Number a, Number b);
inline Number operator+(Number a, double b) { return a + a.known(b); }
inline Number operator+(double a, Number b) { return b.known(a) + b; }
inline Number operator-(Number a, double b) { return a - a.known(b); }
inline Number operator-(double a, Number b) { return b.known(a) - b; }
inline Number operator*(Number a, double b) { return a * a.known(b); }
inline Number operator*(double a, Number b) { return b.known(a) * b; }
inline Number operator/(Number a, double b) { return a / a.known(b); }
inline Number operator/(double a, Number b) { return b.known(a) / b; }

Number min(Number a, double b);
Number max(Number a, double b);
Number floor(Number a);
Number sqrt(Number a);
Number cos(Number a);
Number log(Number a);
Number pow(double base, Number exponent);
Number pow(Number base, double exponent);
/// a - floor(a / b) · b, for a of at least 0: Python's `%`.
Number mod(Number a, double b);
/// `below` where a < b, else `other`.
Number ifLess(Number a, double b, Number below, Number other);
/// `below` where a ≤ b, else `other`.
Number ifAtMost(Number a, double b, Number below, Number other);

/// A step, as its schedule sees it.
struct Course {
  const NNBuilder &build;
  const ScheduleRule &rule;
  Number n;    ///< by the schedule's clock
  Number step; ///< from 1
  double base; ///< `optimizer.lr`, or the group's

  Number known(double number) const { return n.known(number); }
  double get(llvm::StringRef name) const { return rule.values.get(name); }
};

/// Half a wave, from 1 to 0 as `progress` goes from 0 to 1.
Number wave(Number progress);

/// The numbers of all steps of a schedule's rate; null-safe for constant ones.
Number buildRate(const NNBuilder &build, const ScheduleRule &rule,
                 mlir::Value step, double base);

/// Fails as an error of the update rule's.
llvm::Error failSchedule(const llvm::Twine &message);
/// "0.001", as users would write it.
std::string spellNumber(double number);
/// Fails where `total_steps` are not more than `warmup_steps`.
llvm::Error checkLengths(const ScheduleRule &rule);
/// Fails where a rate of this key is above `lr`.
llvm::Error checkBelow(const ScheduleRule &rule, llvm::StringRef key,
                       double lr);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_SCHEDULES_COURSE_H
