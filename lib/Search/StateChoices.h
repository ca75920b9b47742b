// What ranks that share the states of a step have of them, and when: told, not
// chosen, for a config file has said it.

#ifndef ACCEL_LIB_SEARCH_STATECHOICES_H
#define ACCEL_LIB_SEARCH_STATECHOICES_H

#include "mlir/IR/BuiltinOps.h"

namespace accel::search {

/// What `accumulators` of a step have: bytes of a rank.
inline constexpr llvm::StringLiteral kAccumulators = "accumulators",
                                     kGathers = "gathers";

/// Tells how sharded weights are gathered (once a step, or by unit in each
/// micro-batch; and of each kind of unit, whether it is kept from the forward
/// to the backward), and what a rank sums gradients in, of a module in phase
/// `dist` whose decisions on both are made. Nothing where nobody asks.
void tellOfStates(mlir::ModuleOp module, int64_t microBatches);

/// The bytes that a rank has of accumulators, of all stages, in phase `dist` or
/// behind it.
int64_t countAccumulatorBytes(mlir::ModuleOp module);

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_STATECHOICES_H
