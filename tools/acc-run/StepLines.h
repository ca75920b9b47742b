// The lines of training steps: JSON, one for each; or text for people, which on
// a terminal rewrites itself for each step, and elsewhere, under mpirun always,
// comes once a second and for the first and the last step, so that a log stays
// readable.

#ifndef ACCEL_TOOLS_ACC_RUN_STEPLINES_H
#define ACCEL_TOOLS_ACC_RUN_STEPLINES_H

#include "accel-rt/Runtime.h"

#include <chrono>
#include <string>

namespace accel::rt {

/// A number with as many digits as bring the same bits back; null if JSON has
/// no word for it.
std::string exactly(double value, DType dtype);

class StepLines {
public:
  /// Lines go to the standard output.
  explicit StepLines(bool json);
  /// Errors: it cannot be written.
  Status add(const StepResult &step);
  /// Prints the last step if that has not happened, as when the run ended
  /// before its last one, and ends a line that would be rewritten.
  void finish();

private:
  Status printText();

  bool json, terminal, pending = false, first = true;
  std::chrono::steady_clock::time_point printed;
  /// Steps since the last line, the seconds they took, and the last of them.
  int64_t steps = 0;
  double seconds = 0;
  StepResult newest;
};

} // namespace accel::rt

#endif // ACCEL_TOOLS_ACC_RUN_STEPLINES_H
