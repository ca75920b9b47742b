// Schedules by name: which task runs on which micro-batch, in which order.

#ifndef ACCEL_DIALECTS_DIST_SCHEDULEKIND_H
#define ACCEL_DIALECTS_DIST_SCHEDULEKIND_H

#include "dialects/Dist/Dist.h"

namespace accel::dist {

/// A run of the task of a kind, on micro-batch turn + offset.
struct ScheduledTask {
  TaskKind kind;
  int64_t offset;
};

/// Tasks that run turn after turn; once where `trips` is 1.
struct SchedulePart {
  int64_t trips;
  llvm::SmallVector<ScheduledTask> tasks;
};

/// How the micro-batches of a stage follow each other. On a stage each micro-
/// batch goes through `forward` and `backward`; a schedule has `inFlight` of
/// them begun and not ended at most, and keeps the activations of as many.
class ScheduleKind {
public:
  /// - `sequential`: a micro-batch's backward follows its forward;
  /// - `gpipe`: all forwards, then all backwards (Huang et al. 2019,
  ///   arXiv:1811.06965);
  /// - `1f1b:D`: D - 1 forwards ahead, then one forward, one backward in turn
  ///   (PipeDream-Flush, Narayanan et al. 2021, arXiv:2006.09503). The stage
  ///   that is D-th from the end of a pipeline runs it; `sequential` is
  ///   `1f1b:1`.
  ///
  /// None of another name.
  static std::optional<ScheduleKind> parse(llvm::StringRef name);
  /// That of a program for which none was chosen.
  static constexpr llvm::StringLiteral kDefault = "sequential";
  /// The names, for messages.
  static llvm::StringRef getNames() { return "sequential, gpipe or 1f1b:D"; }

  /// Of a step of so many micro-batches.
  int64_t getInFlight(int64_t microBatches) const {
    return inFlight ? inFlight : microBatches;
  }

  /// The order of a step, as prologue, loop and epilogue. Requires that no more
  /// are in flight than there are.
  llvm::SmallVector<SchedulePart> list(int64_t microBatches) const;

private:
  explicit ScheduleKind(int64_t inFlight) : inFlight(inFlight) {}
  int64_t inFlight; ///< 0: all
};

} // namespace accel::dist

#endif // ACCEL_DIALECTS_DIST_SCHEDULEKIND_H
