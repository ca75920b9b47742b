// How far ahead of their readers receives are posted, so that the stages of a
// pipeline do not wait for each other for ever, nor for messages alone.

#ifndef ACCEL_LIB_PLAN_LOWER_POSTINGTIMES_H
#define ACCEL_LIB_PLAN_LOWER_POSTINGTIMES_H

#include "dialects/Dist/Dist.h"
#include "llvm/ADT/MapVector.h"

namespace accel::plan {

/// How many values a task makes before it waits for the first one to be sent.
inline constexpr int64_t kKeptForSending = 2;

/// When the receives of what one task gives another on every micro-batch are
/// posted.
struct Posting {
  /// Right in front of the reader's run on micro-batch m: that of m + this.
  int64_t ahead = 1;
  /// The first ones, of which there are that many, before all micro-batches of
  /// the stage rather than right in front of the reader's first run.
  bool early = false;
};

/// By the tasks that give and that read, in the order of the edges.
using Postings =
    llvm::MapVector<std::pair<mlir::StringAttr, mlir::StringAttr>, Posting>;

/// Lets the stages run with nothing buffered but `kKeptForSending` values at a
/// sender and what a receiver has posted. Where all stand still, receives are
/// posted earlier that would meet what waits to be sent; and where a stage has
/// all that it needs but room for what it makes, those that would give it that,
/// up to two micro-batches ahead. So each is posted as late as can be. Fails,
/// with an error at the schedule, if it stands still all the same.
mlir::FailureOr<Postings> findPostings(dist::ScheduleOp schedule);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_POSTINGTIMES_H
