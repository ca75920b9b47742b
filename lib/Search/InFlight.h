// What the decided schedule comes to: micro-batches in flight, the stages of
// chunks, the time of a step.

#ifndef ACCEL_LIB_SEARCH_INFLIGHT_H
#define ACCEL_LIB_SEARCH_INFLIGHT_H

#include "lib/Pipeline/Synthesise.h"
#include "mlir/IR/BuiltinOps.h"

namespace accel::search {

/// The schedule's name, of `accel.decisions`; sequential where there is none.
inline constexpr llvm::StringLiteral kScheduleKey = "schedule";

/// `in_flight` of `accel.decisions`: of each stage the most micro-batches whose
/// forward has begun and whose backward has not ended, both in its chunk 0.
inline constexpr llvm::StringLiteral kInFlightKey = "in_flight";

/// The same by the schedule that the decisions name, of so many stages and
/// micro-batches. Errors, at the module: no such schedule; an order that is
/// none.
mlir::FailureOr<llvm::SmallVector<int64_t>>
countInFlight(mlir::ModuleOp module, mlir::DictionaryAttr decisions,
              int64_t stages, int64_t microBatches);

/// How a decided module is cut.
struct Layout {
  int64_t ranks = 1, stages = 1, microBatches = 1;
  /// Where there is no order yet, a chunk each.
  llvm::SmallVector<int64_t> stageOfChunk;
  /// By stage, as the decisions have it (`kInFlightKey`); empty if they do not.
  llvm::SmallVector<int64_t> inFlight;

  /// By the mesh and the decisions. Errors: those of `countInFlight`.
  static mlir::FailureOr<Layout> of(mlir::ModuleOp module);
};

/// The time of a step whose tasks take what the problem says, in its unit, by
/// the schedule that the decisions name. Errors: those of `countInFlight`.
mlir::FailureOr<double> playStep(mlir::ModuleOp module, const Layout &layout,
                                 const pipeline::Problem &problem);

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_INFLIGHT_H
