// The order in which the commands of an entry may run.

#ifndef ACCEL_LIB_VERIFY_PLAN_STREAMORDER_H
#define ACCEL_LIB_VERIFY_PLAN_STREAMORDER_H

#include "dialects/Plan/RunList.h"
#include <vector>

namespace accel::verify {

/// A command in one run of its body.
struct PlannedStep {
  plan::CommandOpInterface command;
  plan::RunTurn run;
};

/// The commands of an entry, of each loop two turns, in an order that streams
/// and events allow, nothing else: a segment's end holds no stream up. An error
/// if a wait can never end. Any such order gives the same bytes, once
/// plan-verify has found no two commands that race.
mlir::FailureOr<std::vector<PlannedStep>>
orderCommands(plan::EntryOp entry,
              const llvm::DenseMap<mlir::StringAttr, plan::BodyOp> &bodies);

} // namespace accel::verify

#endif // ACCEL_LIB_VERIFY_PLAN_STREAMORDER_H
