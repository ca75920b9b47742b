// Running an executable: the one call that acc-run makes.

#ifndef ACCEL_RT_RUNTIME_H
#define ACCEL_RT_RUNTIME_H

#include "accel-rt/PlanFormat.h"

#include <functional>

namespace accel::rt {

struct RunOptions {
  std::string executable;
  std::string inputs = ".", outputs; ///< Folders; no outputs: not written.
  int64_t ranks = 0;                 ///< 0: as the mesh says.
  int64_t repeats = 1;
  int64_t threads = 0; ///< Of one rank; 0: cores / ranks.
  bool poison = false;
  double hangSeconds = 60; ///< Without progress for so long is a hang.
  /// Called with a line every two seconds or so, if there is anything to say.
  std::function<void(const std::string &)> progress;
};

/// What a run measured; bytes are those of the worst rank.
struct RunResult {
  int64_t ranks = 1, threads = 1;
  uint64_t plannedPeakBytes = 0;  ///< Sum of the arenas, by the plan.
  uint64_t measuredPeakBytes = 0; ///< Sum of the arenas, as allocated.
  uint64_t touchedPeakBytes = 0;  ///< Up to the highest byte a command named.
  uint64_t residentBytes = 0; ///< After the last run, of this process alone.
  uint64_t reservedBytes = 0; ///< What the plan grants beside the arenas.
  double loadSeconds = 0;
  std::vector<double> seconds; ///< Of each run, on the slowest rank.
};

/// Runs the executable's `load` and then `main` `repeats` times on all ranks,
/// which are processes forked from this one (call it before starting threads).
/// On an error no rank is left running and no output file is changed.
Status runExecutable(const RunOptions &options, RunResult &result);

/// The CPU features among `features` (names as in /proc/cpuinfo, or LLVM's)
/// that this machine lacks.
std::vector<std::string>
missingFeatures(const std::vector<std::string> &features);

} // namespace accel::rt

#endif // ACCEL_RT_RUNTIME_H
