// A training step as one line of JSON or CSV, for stdout and for logs.

#ifndef ACCEL_TOOLS_ACC_RUN_STEPFORMAT_H
#define ACCEL_TOOLS_ACC_RUN_STEPFORMAT_H

#include "accel-rt/Runtime.h"

#include <string>

namespace accel::rt {

/// What is told of the steps since the last telling.
struct ToldStep {
  StepResult result;   ///< Of the last of them.
  int64_t skipped = 0; ///< How many of them were skipped.
  double seconds = 0;  ///< Of one step, their mean.
  /// Until the run ends, if it goes on as it went so far; 0 after its last
  /// step.
  double secondsLeft = 0;

  /// Samples, or tokens where the step has them.
  double unitsPerSecond() const;
  const char *unit() const { return result.tokens ? "tokens" : "samples"; }
};

/// A number with as many digits as bring the same bits back; null if JSON has
/// no word for it.
std::string exactly(double value, DType dtype);

/// Seconds since 1970 as UTC: 2026-11-27T10:57:12.345Z.
std::string timeOfDay(double time);

/// Both begin with the number of the step, by which a log is cut where a run
/// goes on from a checkpoint, and end with a line break. What is not known is
/// left out of the first, and empty in the second, whose columns are the same
/// for all steps of a program that reports these.
std::string jsonLine(const ToldStep &step);
std::string csvLine(const ToldStep &step);
std::string csvHeader(const std::vector<std::string> &reports);

} // namespace accel::rt

#endif // ACCEL_TOOLS_ACC_RUN_STEPFORMAT_H
