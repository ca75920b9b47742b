// What the Evaluate models of all op groups share.

#ifndef ACCEL_LIB_EVALUATE_MODELS_GROUP_H
#define ACCEL_LIB_EVALUATE_MODELS_GROUP_H

#include "dialects/Interfaces/Evaluate.h"
#include "dialects/NN/NN.h"

namespace accel::evaluate {

/// One per op group: attaches the group's models.
void attachElementwiseModels(mlir::MLIRContext *context);
void attachLinearModels(mlir::MLIRContext *context);
void attachConvolutionModels(mlir::MLIRContext *context);
void attachNormModels(mlir::MLIRContext *context);
void attachAttentionModels(mlir::MLIRContext *context);
void attachShapeModels(mlir::MLIRContext *context);
void attachReductionModels(mlir::MLIRContext *context);
void attachStateModels(mlir::MLIRContext *context);
void attachLossModels(mlir::MLIRContext *context);
void attachRandomModels(mlir::MLIRContext *context);

/// A model of op `OpT` for class `Model`, as `evaluate(op, operands, results)`.
template <typename Model, typename OpT>
using EvaluateModel = EvaluateOpInterface::ExternalModel<Model, OpT>;

/// Zeros of the type of the op's result `number`.
inline Tensor makeResult(mlir::Operation *op, unsigned number = 0) {
  return Tensor(
      llvm::cast<mlir::RankedTensorType>(op->getResult(number).getType()));
}

/// Calls `fn(elements of source, writable elements of target)`: doubles or
/// integers, as both tensors hold.
template <typename Fn>
void withElements(const Tensor &source, Tensor &target, Fn fn) {
  if (source.isFloat())
    fn(source.floats(), target.mutableFloats());
  else
    fn(source.ints(), target.mutableInts());
}

/// A shape cut before and after dimension `dim`: how many elements the leading
/// dimensions, `dim` and the trailing ones have.
struct DimSplit {
  int64_t outer = 1, size = 1, inner = 1;
  DimSplit(llvm::ArrayRef<int64_t> shape, int64_t dim) : size(shape[dim]) {
    for (int64_t extent : shape.take_front(dim))
      outer *= extent;
    for (int64_t extent : shape.drop_front(dim + 1))
      inner *= extent;
  }
};

} // namespace accel::evaluate

#endif // ACCEL_LIB_EVALUATE_MODELS_GROUP_H
