// What else there was than the cuts that were taken (lib/Cost/Decision.h).

#ifndef ACCEL_LIB_STAGES_TELLCUTS_H
#define ACCEL_LIB_STAGES_TELLCUTS_H

#include "Balance.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel::stages {

/// Tells where the spine of an entry, of which `row` says what it takes and
/// `copies` what each chunk has of what it keeps, is cut: behind `ends` ops.
/// Beside that what the balance would take, and as many ops each.
void tellCuts(mlir::func::FuncOp entry, llvm::ArrayRef<mlir::Operation *> spine,
              const Row &row, llvm::ArrayRef<double> copies,
              llvm::ArrayRef<size_t> ends, bool areNamed);

} // namespace accel::stages

#endif // ACCEL_LIB_STAGES_TELLCUTS_H
