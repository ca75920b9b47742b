// The file of acc-run --metrics: a line of JSON for each training step, with
// what the step measures of each tensor that it rounds. The first rank writes
// it, which has all of these outputs.

#ifndef ACCEL_RUNTIME_FEED_METRICSLOG_H
#define ACCEL_RUNTIME_FEED_METRICSLOG_H

#include "accel-rt/PlanFormat.h"
#include "accel-rt/Status.h"

#include <array>
#include <map>
#include <string>

namespace accel::rt {

class MetricsLog {
public:
  MetricsLog() = default;
  ~MetricsLog();
  MetricsLog(const MetricsLog &) = delete;
  MetricsLog &operator=(const MetricsLog &) = delete;

  /// Makes the file at `path`, or goes on at its end if `goesOn`: of steps that
  /// a run tells a second time the later line counts. Errors: it cannot be
  /// written, or is there although nothing goes on.
  Status open(const std::string &path, bool goesOn);
  /// Whether a log is open; else the others do nothing.
  bool isOpen() const { return descriptor >= 0; }
  /// Room for the numbers of an output of this name, which stays where it is.
  float *add(const std::string &output) { return values[output].data(); }
  /// Writes the line of a step from the numbers that are there. Errors: it
  /// cannot be written; the lines before are whole.
  Status write(int64_t step);

private:
  std::map<std::string, std::array<float, kMetricSize>> values;
  std::string path, line;
  int descriptor = -1;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FEED_METRICSLOG_H
