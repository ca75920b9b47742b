// The passes that choose in which types a program computes, and the models of
// the Castable interface that they ask.

#ifndef ACCEL_PRECISION_PASSES_H
#define ACCEL_PRECISION_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel::precision {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "accel/Precision/Passes.h.inc"

/// Attaches the Castable models of the nn ops.
void registerCastableModels(mlir::DialectRegistry &registry);

} // namespace accel::precision

#endif // ACCEL_PRECISION_PASSES_H
