// What a program keeps from call to call, and what the proofs ask of it.

#ifndef ACCEL_LIB_EQUIVALENCE_STATES_H
#define ACCEL_LIB_EQUIVALENCE_STATES_H

#include "dialects/NN/NN.h"

namespace accel::equivalence {

/// Checks that `local` has the states of `logical`, each as it is there but for
/// what pads it: whoever loads, trains and saves goes by what they say. Beside
/// them it has accumulators alone. Once for all entries; fails with an error at
/// the first state that differs.
llvm::LogicalResult verifyStates(mlir::ModuleOp logical, mlir::ModuleOp local);

/// Checks that `after` says of the rows of an evaluation, and of what a step
/// reports, what `before` says: by it, whoever calls the one makes a loss of
/// what it gives, and hears of the other what became of it.
llvm::LogicalResult verifySaid(mlir::ModuleOp before, mlir::ModuleOp after);

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_STATES_H
