// The work of `dist-place-gathers` on one entry.

#ifndef ACCEL_LIB_PARALLEL_STATES_PLACEGATHERS_H
#define ACCEL_LIB_PARALLEL_STATES_PLACEGATHERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel::parallel {

/// Puts gathers of weights, rounded before where they are read rounded, in
/// front of the units that read them, in the forward and in the backward; with
/// `once` they are rounded alone.
void placeGathers(mlir::func::FuncOp entry, bool once);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_STATES_PLACEGATHERS_H
