// Scalar functions of generated kernels. In f32 they are branch-free operations
// that LLVM vectorises, exact to a few units in the last place, with NaN and
// infinities as C has them (docs/Numerics.md); in f64 they are calls of the C
// library's functions.

#ifndef ACCEL_LIB_TARGET_CPU_SCALARMATH_H
#define ACCEL_LIB_TARGET_CPU_SCALARMATH_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace accel {

/// Results below the smallest normal number are 0. With `nonPositive`, x is not
/// above 0 (it may be NaN), which saves three operations.
mlir::Value emitExp(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                    bool nonPositive = false);
mlir::Value emitLog(mlir::ImplicitLocOpBuilder &b, mlir::Value x);
mlir::Value emitLog1p(mlir::ImplicitLocOpBuilder &b, mlir::Value x);
mlir::Value emitTanh(mlir::ImplicitLocOpBuilder &b, mlir::Value x);
mlir::Value emitErf(mlir::ImplicitLocOpBuilder &b, mlir::Value x);
/// 1 / (1 + exp(-x)).
mlir::Value emitSigmoid(mlir::ImplicitLocOpBuilder &b, mlir::Value x);
mlir::Value emitSqrt(mlir::ImplicitLocOpBuilder &b, mlir::Value x);
/// A C function of the name `name` for f64 and `name`f for f32.
mlir::Value emitLibraryCall(mlir::ImplicitLocOpBuilder &b, llvm::StringRef name,
                            mlir::ValueRange operands);

/// x · y + z, rounded once.
mlir::Value emitFma(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value y,
                    mlir::Value z);
/// A constant of `like`'s float type.
mlir::Value emitFloat(mlir::ImplicitLocOpBuilder &b, mlir::Value like,
                      double value);

} // namespace accel

#endif // ACCEL_LIB_TARGET_CPU_SCALARMATH_H
