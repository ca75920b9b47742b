// The Evaluate interface for the nn ops.

#ifndef ACCEL_LIB_EVALUATE_MODELS_H
#define ACCEL_LIB_EVALUATE_MODELS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace accel::evaluate {

/// Attaches an Evaluate model to every nn op with a result: the reference
/// meaning of the dialect (lib/Evaluate/Models).
void registerEvaluateModels(mlir::DialectRegistry &registry);

} // namespace accel::evaluate

#endif // ACCEL_LIB_EVALUATE_MODELS_H
