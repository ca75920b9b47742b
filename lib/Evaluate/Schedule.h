// Runs the tasks of a step in the order of its schedule, on all virtual ranks.

#ifndef ACCEL_LIB_EVALUATE_SCHEDULE_H
#define ACCEL_LIB_EVALUATE_SCHEDULE_H

#include "lib/Evaluate/Entry.h"
#include "lib/Evaluate/Lockstep.h"

namespace accel::evaluate {

/// The schedule of an entry that is a declaration; null if there is none.
dist::ScheduleOp findSchedule(mlir::func::FuncOp entry);

/// Runs a schedule on the global tensors of the entry's arguments
/// (in their order), and appends the pieces of its results to `assemblies`: of
/// outputs when the task has run that gives them, of states at the end. Tasks
/// read and write states in the order of the runs; an edge carries what its
/// source gave on the same micro-batch, or once for all. Every rank runs the
/// tasks of all stages, each stage's in their order: what they compute does not
/// depend on who does. Emits a located error
/// and fails where a task asks for what nothing gives.
mlir::LogicalResult evaluateSchedule(dist::ScheduleOp schedule,
                                     mlir::func::FuncOp entry,
                                     const Bindings &bindings,
                                     llvm::ArrayRef<Tensor> arguments,
                                     Lockstep &lockstep, dist::MeshOp mesh,
                                     std::vector<Assembly> &assemblies);

} // namespace accel::evaluate

#endif // ACCEL_LIB_EVALUATE_SCHEDULE_H
