// The schedules that have names: what `--schedule` may say, and the generator
// behind each name.

#ifndef ACCEL_LIB_PIPELINE_NAMEDSCHEDULES_H
#define ACCEL_LIB_PIPELINE_NAMEDSCHEDULES_H

#include "Schedule.h"
#include "llvm/ADT/StringRef.h"

namespace accel::pipeline {

/// How large a schedule is to be.
struct Shape {
  int64_t ranks = 1;
  int64_t chunksPerRank = 1;
  int64_t microBatches = 1;
};

/// A schedule that has a name. docs/Schedules.md says what each is.
struct NamedSchedule {
  llvm::StringLiteral name;
  /// How many chunks a rank has; 0: what stands behind the colon of the name.
  int64_t chunksPerRank;
  Placement (*place)(int64_t ranks, int64_t chunksPerRank);
  /// The tasks of one rank in their order.
  std::vector<Task> (*order)(Shape shape, int64_t rank);
  /// Whether it runs backwards in two parts.
  bool splitsBackward;
};

/// All of them. `auto` is none: synthesise (Synthesise.h) looks for that one.
llvm::ArrayRef<NamedSchedule> getNamedSchedules();

/// What `--schedule` says: a row of the table, or `auto`, which has none.
struct Choice {
  const NamedSchedule *named = nullptr;
  int64_t chunksPerRank = 1; ///< Of `auto` 1.
};

/// Reads gpipe, 1f1b, eager-1f1b, interleaved:V, zb-h1, zb-h2, zbv, dualpipev
/// or auto. Errors: another name; a V that is no number of 2 or more, or is
/// missing; one behind a name that has none.
llvm::Expected<Choice> parseChoice(llvm::StringRef text);

/// Schedules are lists of tasks: of no more chunks of micro-batches than this.
inline constexpr int64_t kMostChunksOfBatches = int64_t(1) << 20;

/// Errors: less than 1 of one of them, or so many that no list is so long.
llvm::Error checkShape(llvm::StringRef schedule, Shape shape);

/// The schedule of that name. Errors: those of `checkShape`.
llvm::Expected<Schedule> generate(const NamedSchedule &named, Shape shape);

} // namespace accel::pipeline

#endif // ACCEL_LIB_PIPELINE_NAMEDSCHEDULES_H
