// Whether the ranks make progress, and which of them do not: measured by what
// they have done, never by the time that a machine under load takes for it.

#ifndef ACCEL_RUNTIME_RUN_HANGWATCH_H
#define ACCEL_RUNTIME_RUN_HANGWATCH_H

#include "Control/ControlPlane.h"

#include <chrono>
#include <sys/types.h>

namespace accel::rt {

/// Looks at the ranks' signs of life, some fifty times a second.
class HangWatch {
public:
  /// A hang is `limit` seconds; the others must outlive it.
  HangWatch(const Executable &plan, ControlCenter &control, double limit);

  /// Looks while nobody owes anything: what comes counts from now on.
  void rest();
  /// Looks once; returns whether there has been no sign of life for longer than
  /// the limit. While all of the run is stopped (Ctrl-Z), nobody fails to give
  /// one.
  bool look();
  /// The hang: where each rank is, and which of them wait for others.
  /// `processes` are theirs, 0 for those that have ended.
  std::string describe(const std::vector<pid_t> &processes) const;

private:
  using Clock = std::chrono::steady_clock;

  const Executable &plan;
  ControlCenter &control;
  double limit;
  std::vector<uint64_t> lastProgress;
  Clock::time_point lastLook = Clock::now();
  std::chrono::duration<double> silent{0};
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_HANGWATCH_H
