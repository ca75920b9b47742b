// What ranks that share the states of a step have of them, and when: told, and
// weighed where a memory budget chooses it (zero.gather_once=auto).

#ifndef ACCEL_LIB_SEARCH_STATECHOICES_H
#define ACCEL_LIB_SEARCH_STATECHOICES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>

namespace accel::search {

/// What `accumulators` of a step have: bytes of a rank.
inline constexpr llvm::StringLiteral kAccumulators = "accumulators",
                                     kGathers = "gathers",
                                     kGatherUnit = "gather unit";

/// Tells how sharded weights are gathered (once a step, or by unit in each
/// micro-batch; and of each kind of unit, whether it is kept from the forward
/// to the backward), and what a rank sums gradients in, of a module in phase
/// `dist` whose decisions on both are made. Nothing where nobody asks.
void tellOfStates(mlir::ModuleOp module, int64_t microBatches);

/// The same of gathers alone, in place of what was told of them, when it was
/// decided anew and for another reason.
void tellOfGathersAgain(mlir::ModuleOp module, int64_t microBatches,
                        llvm::StringRef reason);

/// What gathers of sharded weights take of a step by either lifetime.
struct GatherSeconds {
  double byUnit, once;
};

/// Of an entry in phase `dist`; none where no weights are sharded.
std::optional<GatherSeconds> weighGathers(mlir::func::FuncOp step,
                                          int64_t microBatches);

/// The bytes that a rank has of accumulators, of all stages, in phase `dist` or
/// behind it.
int64_t countAccumulatorBytes(mlir::ModuleOp module);

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_STATECHOICES_H
