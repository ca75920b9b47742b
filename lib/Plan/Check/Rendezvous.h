// Whether the messages of all stages together come to an end.

#ifndef ACCEL_LIB_PLAN_CHECK_RENDEZVOUS_H
#define ACCEL_LIB_PLAN_CHECK_RENDEZVOUS_H

#include "dialects/Plan/Plan.h"

namespace accel::plan {

/// Replays each entry on all stages at once, one rank of each, every turn of
/// every loop. Nothing is buffered: a message is passed on when both its ends
/// have come to it, a group when all its messages have been. No stream has a
/// choice, so what ends in one order ends in every order, whatever anything
/// takes; and ranks of a stage have one text, so that its collectives, which
/// they all come to, hold up none that they do not hold up all.
///
/// `queuesOf` says of a body how many queues its target has for what ranks
/// exchange (Target::getExchangeQueues). A collective, message or group is then
/// passed on only when what was enqueued before it in its queue has been: of
/// one queue all of them, in the order of the run list, as where NCCL's kernels
/// hold a device until their peers come. Streams are dealt to the queues in the
/// order in which they first exchange anything, so that queues have no choice
/// either.
///
/// An error at the message that meets nobody, or at a command that waits for
/// ever, with a note at each of those that wait for each other. Also refuses
/// messages along another axis than that of stages, since the last rank of any
/// other has no neighbour to send to, messages at load, and a group of which
/// one message receives into bytes of another.
using QueuesOf = llvm::function_ref<int64_t(BodyOp)>;
mlir::LogicalResult checkRendezvous(mlir::ModuleOp module, QueuesOf queuesOf);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_CHECK_RENDEZVOUS_H
