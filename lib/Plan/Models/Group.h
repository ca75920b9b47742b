// One function per group of ops: attaches the group's models.

#ifndef ACCEL_LIB_PLAN_MODELS_GROUP_H
#define ACCEL_LIB_PLAN_MODELS_GROUP_H

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace accel::plan {

void attachElementwiseModels(mlir::MLIRContext *context);
void attachShapeModels(mlir::MLIRContext *context);
void attachReductionModels(mlir::MLIRContext *context);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_MODELS_GROUP_H
