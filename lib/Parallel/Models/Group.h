// One function per group of ops: attaches the group's models.

#ifndef ACCEL_LIB_PARALLEL_MODELS_GROUP_H
#define ACCEL_LIB_PARALLEL_MODELS_GROUP_H

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace accel::parallel {

void attachElementwiseModels(mlir::MLIRContext *context);
void attachShapeModels(mlir::MLIRContext *context);
void attachLookupModels(mlir::MLIRContext *context);
void attachLinearModels(mlir::MLIRContext *context);
void attachConvolutionModels(mlir::MLIRContext *context);
void attachReductionModels(mlir::MLIRContext *context);
void attachNormModels(mlir::MLIRContext *context);
void attachAttentionModels(mlir::MLIRContext *context);
void attachLossModels(mlir::MLIRContext *context);
void attachStateModels(mlir::MLIRContext *context);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_MODELS_GROUP_H
