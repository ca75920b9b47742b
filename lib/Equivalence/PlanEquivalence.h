// The proof that a plan computes what one rank's program says, byte for byte.

#ifndef ACCEL_LIB_EQUIVALENCE_PLANEQUIVALENCE_H
#define ACCEL_LIB_EQUIVALENCE_PLANEQUIVALENCE_H

#include "mlir/IR/BuiltinOps.h"

namespace accel::equivalence {

/// Executes the plan on value numbers, and holds every output and every state
/// that it leaves against the values that the tasks of `local` (a module in
/// phase `local`) give them. An error at the command that writes another value,
/// reads what nothing has put there, or destroys what a later run reads.
///
/// Shares no code with lowering, fusion, reuse, bucketing and allocation: it
/// knows what ops of `nn` and commands compute, and what bytes a view has. It
/// believes that no two commands race, which plan-verify has looked for.
mlir::LogicalResult verifyPlanEquivalence(mlir::ModuleOp local,
                                          mlir::ModuleOp plan);

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PLANEQUIVALENCE_H
