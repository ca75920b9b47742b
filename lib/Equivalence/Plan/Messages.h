// Which message of one stage meets which of another.

#ifndef ACCEL_LIB_EQUIVALENCE_PLAN_MESSAGES_H
#define ACCEL_LIB_EQUIVALENCE_PLAN_MESSAGES_H

#include "mlir/IR/BuiltinOps.h"

namespace accel::equivalence {

/// Checks that what is received on a micro-batch was sent on it. Messages of
/// one tag meet in the order in which they are posted, so this holds if both
/// ends post them in one stream, on the same micro-batches in the same order.
/// With the proofs of all programs, each of which believes what it receives,
/// this is an induction over the messages in the order in which they meet: that
/// there is one is what plan-verify shows.
mlir::LogicalResult verifyMessages(mlir::ModuleOp plan);

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PLAN_MESSAGES_H
