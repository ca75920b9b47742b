// How ranks and the process that started them come to terms, beside the data
// that they exchange: start, barriers, agreement, words for each other, signs
// of life, and the end. Shared memory serves it on one machine
// (SharedControl.h); what is asked here any network can give.
//
// When a rank dies or fails, the one who oversees the ranks aborts the run (a
// rank that fails does so by itself): every wait of every other rank then ends
// with an error, kAbortedMessage, within a second. Ranks die with their parent.

#ifndef ACCEL_RUNTIME_CONTROL_CONTROLPLANE_H
#define ACCEL_RUNTIME_CONTROL_CONTROLPLANE_H

#include "Control/Control.h"

#include <functional>
#include <optional>
#include <sys/types.h>

namespace accel::rt {

/// How many of what there are.
struct ControlSize {
  int64_t ranks = 1;
  int64_t calls = 0;  ///< That are reported.
  size_t words = 0;   ///< Of the board.
  size_t entries = 0; ///< Of a program, for counts.
};

/// A rank's side. barrier() and agree() are called by one thread, in the same
/// order on all ranks; the rest by any thread.
class ControlPlane {
public:
  virtual ~ControlPlane() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t numRanks() const = 0;

  /// What the rank tells of itself, by writing it here. It reaches who oversees
  /// within a second, or at once with report() and abort().
  virtual RankControl &self() = 0;

  /// Waits until all ranks have come. Errors: the run is aborted.
  virtual Status barrier() = 0;
  /// The same, and `value` becomes the greatest of those that ranks came with.
  virtual Status agree(int64_t &value) = 0;

  /// Writes a word of the board, which all ranks find there after the next
  /// barrier or agreement, and without one within a second; those of one thread
  /// in the order in which it wrote them. Between two of them one rank writes a
  /// word. Does not wait for others.
  virtual void post(size_t word, uint64_t value) = 0;
  virtual uint64_t find(size_t word) const = 0;

  /// Reports a call, from 0 in this run: its seconds, and what its step told.
  /// Before RankControl::runsDone counts it.
  virtual void report(int64_t call, double seconds,
                      const StepRecord &record) = 0;
  /// What each entry of the rank's program comes to, where it is counted.
  virtual Counts &counts(size_t entry) = 0;

  /// Whether who oversees asks for an end in order. May be late.
  virtual bool isStopWanted() const = 0;
  /// Ends the run: never waits, allocates nothing.
  virtual void abort() = 0;
  /// Whether somebody did: cheap enough to be asked before every command.
  virtual bool isAborted() const = 0;
  /// Tells what is still to be told, before the rank ends. Allocates nothing.
  virtual void close() = 0;
};

/// How a rank ended.
struct RankEnd {
  bool bySignal = false;
  int code = 0; ///< The signal, or the exit code.
  /// It had used up the CPU time that the system grants a process.
  bool isOutOfTime = false;
};

/// Collects a process that this one has forked, if it has ended.
std::optional<RankEnd> collectRank(pid_t process);

/// The side of the process that starts the ranks and oversees them. Of one
/// thread; nothing here waits.
class ControlCenter {
public:
  virtual ~ControlCenter() = default;
  virtual int64_t numRanks() const = 0;

  /// Starts a rank, whose life is `life`; its exit code is what that returns.
  /// Errors: the system has no room for it.
  virtual Status start(int64_t rank,
                       const std::function<int(ControlPlane &)> &life) = 0;
  /// Whether a rank that was started has ended, and how; told once.
  virtual std::optional<RankEnd> findEnd(int64_t rank) = 0;
  /// Ends a rank by force.
  virtual void kill(int64_t rank) = 0;
  /// Its process, where it is one of this machine's and lives; else 0.
  virtual pid_t process(int64_t rank) const = 0;

  virtual const RankControl &rank(int64_t rank) = 0;
  virtual double seconds(int64_t rank, int64_t call) = 0;
  /// What rank 0 saw of a step.
  virtual StepRecord record(int64_t call) = 0;
  virtual const Counts &counts(int64_t rank, size_t entry) = 0;

  virtual void wantStop() = 0;
  virtual bool isStopWanted() const = 0;
  virtual void abort() = 0;
  virtual bool isAborted() = 0;

  /// What the ranks agree on, of RankControl's words of that name.
  int64_t firstStep() { return rank(0).firstStep; }
  int64_t interruptedAt() { return rank(0).interruptedAt; }
  int64_t stoppedEarlyAt() { return rank(0).stoppedEarlyAt; }
  int64_t stoppedAt() {
    int64_t first = 0;
    for (int64_t each = 0; each < numRanks(); ++each)
      if (int64_t at = rank(each).stoppedAt; at && (!first || at < first))
        first = at;
    return first;
  }
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_CONTROL_CONTROLPLANE_H
