// Conversions between f32 and the bits of narrower floats, in generated
// kernels.

#ifndef ACCEL_LIB_TARGET_CPU_NARROWNUMBERS_H
#define ACCEL_LIB_TARGET_CPU_NARROWNUMBERS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace accel {

/// How an element of a float narrower than f32 lies in memory: as f16, for
/// which every processor that kernels are made for has instructions, or as an
/// integer of its width, of whole bytes.
mlir::Type getNarrowStorage(mlir::ImplicitLocOpBuilder &b, mlir::Type element);

/// The f32 of a stored element.
mlir::Value emitWiden(mlir::ImplicitLocOpBuilder &b, mlir::Value stored,
                      mlir::Type element);

/// The element nearest to an f32, ties to even; beyond the largest infinity,
/// NaN in a format without, the largest in one without either.
mlir::Value emitNarrow(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                       mlir::Type element);

} // namespace accel

#endif // ACCEL_LIB_TARGET_CPU_NARROWNUMBERS_H
