// What all gradient rules share: the base class of the models.

#ifndef ACCEL_LIB_AUTODIFF_MODELS_GROUP_H
#define ACCEL_LIB_AUTODIFF_MODELS_GROUP_H

#include "dialects/Interfaces/Differentiable.h"
#include "lib/Autodiff/NNBuilder.h"

namespace accel::autodiff {

inline bool isFloat(mlir::Value value) {
  return llvm::isa<mlir::FloatType>(typeOf(value).getElementType());
}

/// A rule `vjp(Op, const NNBuilder &, Value gradient, SmallVectorImpl<Value>
/// &)` of an op with one result, which appends a gradient for each operand.
/// What is not wanted is dropped again, and dead.
template <typename Model, typename Op>
struct GradientModel
    : DifferentiableOpInterface::ExternalModel<GradientModel<Model, Op>, Op> {
  llvm::LogicalResult
  buildVjp(mlir::Operation *op, mlir::OpBuilder &builder,
           mlir::ValueRange gradients, llvm::ArrayRef<bool> wanted,
           llvm::MutableArrayRef<mlir::Value> operandGradients) const {
    llvm::SmallVector<mlir::Value> all;
    NNBuilder build{builder, gradientLoc(op)};
    if (mlir::failed(Model::vjp(llvm::cast<Op>(op), build, gradients[0], all)))
      return mlir::failure();
    for (auto [index, gradient] : llvm::enumerate(all))
      if (wanted[index])
        operandGradients[index] = gradient;
    return mlir::success();
  }
};

// One function per op group.
void attachElementwiseModels(mlir::MLIRContext *context);
void attachLinearModels(mlir::MLIRContext *context);
void attachConvolutionModels(mlir::MLIRContext *context);
void attachNormModels(mlir::MLIRContext *context);
void attachAttentionModels(mlir::MLIRContext *context);
void attachShapeModels(mlir::MLIRContext *context);
void attachReductionModels(mlir::MLIRContext *context);
void attachLossModels(mlir::MLIRContext *context);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_MODELS_GROUP_H
