// What the parent does while its ranks run: it starts them, tells of their
// steps, and ends all of them when one ends badly, when they hang, or when it
// is told to.

#ifndef ACCEL_RUNTIME_RUN_SUPERVISOR_H
#define ACCEL_RUNTIME_RUN_SUPERVISOR_H

#include "Run/HangWatch.h"
#include "Run/Interrupts.h"
#include "Run/Rank.h"

#include <optional>
#include <string>
#include <sys/types.h>
#include <tuple>
#include <vector>

namespace accel::rt {

/// A rank's life, in its own process: what `interrupts` does is undone. Returns
/// the exit code.
int liveAsRank(const Job &job, Interrupts &interrupts, ControlPlane &plane);

/// One run of a job. Ranks die with the parent.
class Supervisor {
public:
  /// `job` must outlive it.
  explicit Supervisor(const Job &job);

  /// Starts the ranks and waits for their end. Errors: the first rank that
  /// ended badly, a hang, a signal; whatever it is, no rank is left (but one
  /// that SIGKILL does not end, which the error names).
  Status run();

  /// Why a step could not be told; then no later one was.
  const Status &untold() const { return untoldStep; }

private:
  std::optional<RankEnd> findEnd(size_t rank);
  std::vector<pid_t> processes() const;
  Status watch();
  void rest(std::chrono::nanoseconds duration);
  void stop(Status why);
  void reportSteps(bool waits);
  void warnOfRate(const StepResult &step);
  void reportProgress();
  std::string progressLine() const;
  void reap();
  void failAsSaid(size_t rank);
  void fail(Status status);
  void endAll();
  void collectKilled();

  const Job &job;
  const Executable &plan;
  ControlCenter &control;
  Interrupts interrupts;
  std::vector<bool> lives; ///< Of the ranks that were started.
  size_t running = 0;
  int64_t reported = 0;
  bool warnedOfRate = false;
  bool hasUpdated = false; ///< A step of this run that was told was done.
  std::chrono::steady_clock::time_point lastLine;
  std::string toldLast; ///< What stays the same is said once.
  Status failure, untoldStep;
  /// Of a failure that a rank has given: after how many runs, at which command
  /// (RankControl::command) and on which rank. What comes before it there is
  /// told instead, though it was heard of later.
  std::optional<std::tuple<uint64_t, int64_t, size_t>> failedAt;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_SUPERVISOR_H
