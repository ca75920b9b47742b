// The order in which the commands of a run may run.

#ifndef ACCEL_LIB_EQUIVALENCE_PLAN_STREAMORDER_H
#define ACCEL_LIB_EQUIVALENCE_PLAN_STREAMORDER_H

#include "dialects/Plan/Plan.h"
#include <vector>

namespace accel::equivalence {

/// The commands of a body in an order that streams and events allow; an error
/// if a wait can never end. Any such order gives the same bytes, once
/// plan-verify has found no two commands that race: one run after the other is
/// one of them, though its end holds no stream up, as a wait is for what its
/// own run records or one before it.
mlir::FailureOr<std::vector<plan::CommandOpInterface>>
orderCommands(plan::BodyOp body);

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PLAN_STREAMORDER_H
