// One rank's program without the dimensions that ranks were.

#ifndef ACCEL_LIB_PARALLEL_SPLIT_DROPUNITS_H
#define ACCEL_LIB_PARALLEL_SPLIT_DROPUNITS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel::parallel {

/// Cuts and joins what a reshape has given a dimension of one element without
/// that dimension.
void dropUnits(mlir::func::FuncOp function);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_SPLIT_DROPUNITS_H
