// Which updates of a scatter concern a row of its table.

#ifndef ACCEL_LIB_TARGET_CPU_MODELS_SCATTER_H
#define ACCEL_LIB_TARGET_CPU_MODELS_SCATTER_H

#include "dialects/NN/NN.h"
#include "lib/Target/CPU/RowEmitter.h"

namespace accel::cpu {

/// The places, among the indices, of those that name a row in [first, last), in
/// scratch (a pointer to i64), and how many there are; two null values where
/// scratch has no room for all.
RowEmitter::Values findUpdatesWithin(RowEmitter &emitter,
                                     nn::ScatterAddOp scatter,
                                     mlir::Value first, mlir::Value last);

/// Of those places, or of all where `near` is empty, the ones that name `row`.
/// Emitted once per row.
RowEmitter::Values findUpdates(RowEmitter &emitter, nn::ScatterAddOp scatter,
                               mlir::Value row, mlir::ValueRange near);

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_MODELS_SCATTER_H
