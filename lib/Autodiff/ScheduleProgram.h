// The part of a step that makes its hyperparameters, as a program of its own:
// for looking at them.

#ifndef ACCEL_LIB_AUTODIFF_SCHEDULEPROGRAM_H
#define ACCEL_LIB_AUTODIFF_SCHEDULEPROGRAM_H

#include "UpdateRule.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace accel::autodiff {

/// The input of the program: the number of the step, from 1 (rank-0 f64).
inline constexpr llvm::StringLiteral kScheduleInput = "step";

/// A module whose only function gives what the schedule makes of a step: `lr`,
/// what else it drives (`momentum`, `beta1`, `weight_decay`), and the same of
/// each `groups[PATTERN]` that has a rate or a decay of its own, called
/// `lr of groups[PATTERN]`. Built by what builds a step.
mlir::OwningOpRef<mlir::ModuleOp>
buildScheduleProgram(mlir::MLIRContext *context, const UpdateRule &rule);

/// How many steps it takes for the schedule to have done all that it does but
/// repeat it; at least 10, and a few more than its lengths.
int64_t countSteps(const UpdateRule &rule);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_SCHEDULEPROGRAM_H
