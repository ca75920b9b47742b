// The passes that choose in which types a program computes.

#ifndef ACCEL_LIB_PRECISION_PASSES_H
#define ACCEL_LIB_PRECISION_PASSES_H

#include "dialects/Accel/Accel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel::precision {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Precision/Passes.h.inc"

/// Checks what can be refused without a model.
llvm::Error checkQuantizeOptions(const QuantizeProductsPassOptions &options);

} // namespace accel::precision

#endif // ACCEL_LIB_PRECISION_PASSES_H
