// Zeros, which alone may stand beside partial sums: every rank would add
// anything else once more.

#ifndef ACCEL_LIB_PARALLEL_MODELS_ZEROS_H
#define ACCEL_LIB_PARALLEL_MODELS_ZEROS_H

#include "mlir/IR/Value.h"

namespace accel::parallel {

/// Whether a value is a constant of zeros, wherever it is placed.
bool isZeros(mlir::Value value);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_MODELS_ZEROS_H
