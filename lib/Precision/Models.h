// The Castable interface for the nn ops.

#ifndef ACCEL_LIB_PRECISION_MODELS_H
#define ACCEL_LIB_PRECISION_MODELS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace accel::precision {

/// Attaches the Castable models of the nn ops.
void registerCastableModels(mlir::DialectRegistry &registry);

} // namespace accel::precision

#endif // ACCEL_LIB_PRECISION_MODELS_H
