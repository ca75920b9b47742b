// The Differentiable interface for the nn ops.

#ifndef ACCEL_LIB_AUTODIFF_MODELS_H
#define ACCEL_LIB_AUTODIFF_MODELS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace accel::autodiff {

/// Attaches vector-Jacobian products to the nn ops (lib/Autodiff/Models).
void registerDifferentiableModels(mlir::DialectRegistry &registry);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_MODELS_H
