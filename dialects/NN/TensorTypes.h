// The type and the shape of a value that is known to be a tensor: what nearly
// every pass asks of an operand, in one word.
#ifndef ACCEL_DIALECTS_NN_TENSORTYPES_H
#define ACCEL_DIALECTS_NN_TENSORTYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace accel {

/// The type of a ranked tensor; another value is an error of the caller.
inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// Its extents, kDynamic where they are not known.
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return typeOf(value).getShape();
}

} // namespace accel

#endif // ACCEL_DIALECTS_NN_TENSORTYPES_H
