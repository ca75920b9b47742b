// The Cost interface: FLOPs and bytes of an op.

#ifndef ACCEL_DIALECTS_INTERFACES_COST_H
#define ACCEL_DIALECTS_INTERFACES_COST_H

#include "mlir/IR/OpDefinition.h"

namespace accel {

/// Bytes of a statically shaped tensor type; sub-byte elements take one byte.
int64_t getTensorBytes(mlir::Type type);

/// The sum of getTensorBytes over an op's operands and results.
int64_t getOperandAndResultBytes(mlir::Operation *op);

} // namespace accel

#include "dialects/Interfaces/Cost.h.inc"

#endif // ACCEL_DIALECTS_INTERFACES_COST_H
