// How many micro-batches a schedule has in flight.

#ifndef ACCEL_LIB_SEARCH_INFLIGHT_H
#define ACCEL_LIB_SEARCH_INFLIGHT_H

#include "mlir/IR/BuiltinOps.h"

namespace accel::search {

/// `in_flight` of `accel.decisions`: of each stage the most micro-batches whose
/// forward has begun and whose backward has not ended, both in its chunk 0.
inline constexpr llvm::StringLiteral kInFlightKey = "in_flight";

/// The same by the schedule that the decisions name, of so many stages and
/// micro-batches. Errors, at the module: no such schedule; an order that is
/// none.
mlir::FailureOr<llvm::SmallVector<int64_t>>
countInFlight(mlir::ModuleOp module, mlir::DictionaryAttr decisions,
              int64_t stages, int64_t microBatches);

/// The stage of each chunk by the same; the chunks of a stage of which there is
/// no order yet are one.
mlir::FailureOr<llvm::SmallVector<int64_t>>
findStageOfChunk(mlir::ModuleOp module, mlir::DictionaryAttr decisions,
                 int64_t stages, int64_t microBatches);

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_INFLIGHT_H
