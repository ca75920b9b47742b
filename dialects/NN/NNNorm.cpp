// Type inference of softmax and the normalisations.

#include "dialects/NN/NN.h"
#include "dialects/NN/NNDims.h"

using namespace mlir;
using namespace accel::nn;

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> loc,
                                          SoftmaxOp::Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  int64_t dim = adaptor.getDim();
  if (failed(verifyDim(loc, dim, input.getRank())))
    return failure();
  types.push_back(
      RankedTensorType::get(input.getShape(), input.getElementType()));
  return success();
}

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            LayerNormOp::Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  int64_t dim = adaptor.getDim();
  if (failed(verifyDim(loc, dim, input.getRank())))
    return failure();
  ArrayRef<int64_t> normal = input.getShape().drop_front(dim);
  SmallVector<Value, 2> affine{adaptor.getScale()};
  if (adaptor.getBias())
    affine.push_back(adaptor.getBias());
  for (Value value : affine) {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getShape() != normal ||
        type.getElementType() != input.getElementType())
      return emitOptionalError(loc, "expected scale and bias of shape [",
                               normal, "] and element type ",
                               input.getElementType(), ", found ", type);
  }
  types.push_back(
      RankedTensorType::get(input.getShape(), input.getElementType()));
  return success();
}

LogicalResult BatchNormOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            BatchNormOp::Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  int64_t dim = adaptor.getDim();
  if (dim < 1 || dim >= input.getRank())
    return emitOptionalError(
        loc, "expected channels in a dimension behind the first, found 'dim' ",
        dim, " of ", input);
  double momentum = adaptor.getMomentum().convertToDouble();
  if (!(momentum >= 0 && momentum <= 1))
    return emitOptionalError(loc, "expected 'momentum' in [0, 1], found ",
                             momentum);
  for (Value running : {adaptor.getMean(), adaptor.getVariance()}) {
    auto type = cast<RankedTensorType>(running.getType());
    if (type.getShape() != input.getShape().slice(dim, 1))
      return emitOptionalError(loc, "expected running statistics of ",
                               input.getDimSize(dim), " channels, found ",
                               type);
  }
  types.push_back(
      RankedTensorType::get(input.getShape(), input.getElementType()));
  return success();
}
