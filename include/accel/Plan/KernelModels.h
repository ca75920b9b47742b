// The KernelSource interface for the nn ops.

#ifndef ACCEL_PLAN_KERNELMODELS_H
#define ACCEL_PLAN_KERNELMODELS_H

namespace mlir {
class DialectRegistry;
class MLIRContext;
} // namespace mlir

namespace accel::plan {

/// Attaches a KernelSource model to every nn op but matmul and attention, which
/// are commands of their own.
void registerKernelSourceModels(mlir::DialectRegistry &registry);

/// The parts of it, one for each group of ops.
void attachElementwiseKernelModels(mlir::MLIRContext &context);
void attachShapeKernelModels(mlir::MLIRContext &context);
void attachReductionKernelModels(mlir::MLIRContext &context);

} // namespace accel::plan

#endif // ACCEL_PLAN_KERNELMODELS_H
