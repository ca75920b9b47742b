// The order in which the commands of a segment may run.

#ifndef ACCEL_LIB_VERIFY_PLAN_STREAMORDER_H
#define ACCEL_LIB_VERIFY_PLAN_STREAMORDER_H

#include "dialects/Plan/Plan.h"
#include <vector>

namespace accel::verify {

/// A command in one run of its body.
struct PlannedStep {
  plan::CommandOpInterface command;
  plan::RunOp run;
};

/// The commands of a segment in an order that streams and events allow; an
/// error if a wait can never end. Any such order gives the same bytes, once
/// plan-verify has found no two commands that race.
mlir::FailureOr<std::vector<PlannedStep>>
orderCommands(plan::SegmentOp segment,
              const llvm::DenseMap<mlir::StringAttr, plan::BodyOp> &bodies);

} // namespace accel::verify

#endif // ACCEL_LIB_VERIFY_PLAN_STREAMORDER_H
