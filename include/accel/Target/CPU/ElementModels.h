// The ElementSource interface for the nn ops.

#ifndef ACCEL_TARGET_CPU_ELEMENTMODELS_H
#define ACCEL_TARGET_CPU_ELEMENTMODELS_H

namespace mlir {
class DialectRegistry;
class MLIRContext;
} // namespace mlir

namespace accel::cpu {

/// Attaches an ElementSource model to every nn op that a kernel may contain.
void registerElementSourceModels(mlir::DialectRegistry &registry);

/// The parts of it, one for each group of ops.
void attachElementwiseElementModels(mlir::MLIRContext &context);
void attachShapeElementModels(mlir::MLIRContext &context);
void attachReductionElementModels(mlir::MLIRContext &context);
void attachNormElementModels(mlir::MLIRContext &context);
void attachStateElementModels(mlir::MLIRContext &context);
void attachRandomElementModels(mlir::MLIRContext &context);

} // namespace accel::cpu

#endif // ACCEL_TARGET_CPU_ELEMENTMODELS_H
