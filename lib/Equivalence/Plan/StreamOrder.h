// The order in which the commands of a segment may run.

#ifndef ACCEL_LIB_EQUIVALENCE_PLAN_STREAMORDER_H
#define ACCEL_LIB_EQUIVALENCE_PLAN_STREAMORDER_H

#include "dialects/Plan/Plan.h"
#include <vector>

namespace accel::equivalence {

/// A command in one run of its body.
struct PlannedStep {
  plan::CommandOpInterface command;
  plan::RunOp run;
};

/// The commands of a segment in an order that streams and events allow; an
/// error if a wait can never end. Any such order gives the same bytes, once
/// plan-verify has found no two commands that race: one segment after the other
/// is one of them, though its end holds no stream up.
mlir::FailureOr<std::vector<PlannedStep>>
orderCommands(plan::SegmentOp segment,
              const llvm::DenseMap<mlir::StringAttr, plan::BodyOp> &bodies);

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PLAN_STREAMORDER_H
