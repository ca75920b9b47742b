// One function per group of ops: attaches the group's models.

#ifndef ACCEL_LIB_TARGET_ELEMENT_MODELS_GROUP_H
#define ACCEL_LIB_TARGET_ELEMENT_MODELS_GROUP_H

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace accel::element {

void attachElementwiseModels(mlir::MLIRContext *context);
void attachDynamicCodeModels(mlir::MLIRContext *context);
void attachShapeModels(mlir::MLIRContext *context);
void attachRandomModels(mlir::MLIRContext *context);
void attachReductionModels(mlir::MLIRContext *context);
void attachNormModels(mlir::MLIRContext *context);
void attachStateModels(mlir::MLIRContext *context);

} // namespace accel::element

#endif // ACCEL_LIB_TARGET_ELEMENT_MODELS_GROUP_H
