// What all gradient rules share: the base class of the models.

#ifndef ACCEL_LIB_AUTODIFF_RULES_RULES_H
#define ACCEL_LIB_AUTODIFF_RULES_RULES_H

#include "dialects/Interfaces/Differentiable.h"
#include "lib/Autodiff/Emit.h"

namespace accel::autodiff {

inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return Emit::typeOf(value);
}

inline bool isFloat(mlir::Value value) {
  return llvm::isa<mlir::FloatType>(typeOf(value).getElementType());
}

/// A rule `vjp(Op, const Emit &, Value gradient, SmallVectorImpl<Value> &)` of
/// an op with one result, which appends a gradient for each operand. What is
/// not wanted is dropped again, and dead.
template <typename Model, typename Op>
struct GradientModel
    : DifferentiableOpInterface::ExternalModel<GradientModel<Model, Op>, Op> {
  llvm::LogicalResult
  buildVjp(mlir::Operation *op, mlir::OpBuilder &builder,
           mlir::ValueRange gradients, llvm::ArrayRef<bool> wanted,
           llvm::MutableArrayRef<mlir::Value> operandGradients) const {
    llvm::SmallVector<mlir::Value> all;
    Emit emit{builder, gradientLoc(op)};
    if (mlir::failed(Model::vjp(llvm::cast<Op>(op), emit, gradients[0], all)))
      return mlir::failure();
    for (auto [index, gradient] : llvm::enumerate(all))
      if (wanted[index])
        operandGradients[index] = gradient;
    return mlir::success();
  }
};

// One function per op group.
void attachElementwiseRules(mlir::MLIRContext *context);
void attachLinearRules(mlir::MLIRContext *context);
void attachNormRules(mlir::MLIRContext *context);
void attachAttentionRules(mlir::MLIRContext *context);
void attachShapeRules(mlir::MLIRContext *context);
void attachReductionRules(mlir::MLIRContext *context);
void attachLossRules(mlir::MLIRContext *context);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_RULES_RULES_H
