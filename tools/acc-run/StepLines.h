// One line for every training step: JSON, or text for people, which rewrites
// itself on a terminal and comes once a second elsewhere.

#ifndef ACCEL_TOOLS_ACC_RUN_STEPLINES_H
#define ACCEL_TOOLS_ACC_RUN_STEPLINES_H

#include "accel-rt/Runtime.h"

#include <chrono>

namespace accel::rt {

class StepLines {
public:
  /// Lines go to the standard output.
  explicit StepLines(bool json);
  void add(const StepResult &step);
  /// Ends a line that would be rewritten.
  void finish();

private:
  bool json, terminal, pending = false, first = true;
  std::chrono::steady_clock::time_point last;
};

} // namespace accel::rt

#endif // ACCEL_TOOLS_ACC_RUN_STEPLINES_H
