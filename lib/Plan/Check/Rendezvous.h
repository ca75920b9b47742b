// Whether the messages of all stages together come to an end.

#ifndef ACCEL_LIB_PLAN_CHECK_RENDEZVOUS_H
#define ACCEL_LIB_PLAN_CHECK_RENDEZVOUS_H

#include "mlir/IR/BuiltinOps.h"

namespace accel::plan {

/// Replays each entry on all stages at once, one rank of each, every turn of
/// every loop. Nothing is buffered: a message is passed on when both its ends
/// have come to it, a group when all its messages have been. No stream has a
/// choice, so what ends in one order ends in every order, whatever anything
/// takes; and ranks of a stage have one text, so that its collectives, which
/// they all come to, hold up none that they do not hold up all.
///
/// An error at the message that meets nobody, or at a command that waits for
/// ever. Also refuses messages along another axis than that of stages, since
/// the last rank of any other has no neighbour to send to, messages at load,
/// and a group of which one message receives into bytes of another.
mlir::LogicalResult checkRendezvous(mlir::ModuleOp module);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_CHECK_RENDEZVOUS_H
