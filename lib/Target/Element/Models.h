// The ElementSource interface for the nn ops.

#ifndef ACCEL_LIB_TARGET_ELEMENT_MODELS_H
#define ACCEL_LIB_TARGET_ELEMENT_MODELS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace accel::element {

/// Attaches an ElementSource model to every nn op that a kernel may contain.
void registerElementSourceModels(mlir::DialectRegistry &registry);

} // namespace accel::element

#endif // ACCEL_LIB_TARGET_ELEMENT_MODELS_H
