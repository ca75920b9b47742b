// Which kernels may write where they read.

#ifndef ACCEL_LIB_EQUIVALENCE_PLAN_INPLACE_H
#define ACCEL_LIB_EQUIVALENCE_PLAN_INPLACE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel::equivalence {

/// Whether a kernel whose results take the place of an argument, element for
/// element, still computes what it says, its `rows` in any order: of the
/// argument's elements each result reads the one that it takes the place of,
/// and others of the same row only in a reduction, which ends before.
bool mayWriteInPlace(mlir::func::FuncOp kernel, unsigned argument,
                     int64_t rows);

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PLAN_INPLACE_H
