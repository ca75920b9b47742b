// The order of a stage's messages where they stand in queues of the target
// rather than each channel in a stream of its own.

#ifndef ACCEL_LIB_PLAN_LOWER_MESSAGEORDER_H
#define ACCEL_LIB_PLAN_LOWER_MESSAGEORDER_H

#include "dialects/Dist/Dist.h"

namespace accel::plan {

/// What one task gives another one of another stage on a micro-batch.
struct QueuedMessage {
  std::pair<mlir::StringAttr, mlir::StringAttr> ends; ///< that give and read
  int64_t microBatch;
  /// Stands in front of the stage's run of this number, each turn of a loop
  /// being one; behind the last run if there are no more.
  size_t before;
};

/// The messages that a stage sends and receives, in one order for all stages:
/// that in which they are made where every message is passed on at once. A send
/// stands right behind its giver's run, a receive in front of the first run
/// that begins when the message has been made.
///
/// So no stage waits for another for ever, with any number of queues: a message
/// that is before all that have not been passed on stands first in its queue at
/// both ends, since all that stands before it there comes before it; and what
/// runs before it on either stage has got all that it reads, by the same
/// argument. Fails, with an error at the schedule, if a run waits for what
/// cannot run before it.
mlir::FailureOr<std::vector<QueuedMessage>>
orderMessages(dist::ScheduleOp schedule, int64_t stage);

/// Writes the turns of a stage's loops one by one, of those that run a task
/// which gives messages or reads them.
void unrollExchanging(dist::StageOp stage);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_MESSAGEORDER_H
