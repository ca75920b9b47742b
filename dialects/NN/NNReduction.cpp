// Type inference of reductions.

#include "dialects/NN/NN.h"
#include "dialects/NN/NNDims.h"

using namespace mlir;
using namespace accel::nn;

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> loc,
                                         ReduceOp::Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  int64_t previous = -1;
  for (int64_t dim : adaptor.getDims()) {
    if (dim <= previous || dim >= input.getRank())
      return emitOptionalError(loc, "expected ascending dimensions below ",
                               input.getRank(), ", found [", adaptor.getDims(),
                               "]");
    previous = dim;
  }
  bool extreme = adaptor.getKind() == ReductionKind::max ||
                 adaptor.getKind() == ReductionKind::min;
  if (adaptor.getFirst() && (!extreme || adaptor.getDims().size() != 1))
    return emitOptionalError(loc,
                             "expected 'first' on a max or min over one "
                             "dimension, found ",
                             stringifyReductionKind(adaptor.getKind()),
                             " over [", adaptor.getDims(), "]");
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < input.getRank(); ++dim)
    if (!llvm::is_contained(adaptor.getDims(), dim))
      shape.push_back(input.getDimSize(dim));
  types.push_back(RankedTensorType::get(shape, input.getElementType()));
  return success();
}

LogicalResult CumsumOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> loc,
                                         CumsumOp::Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  int64_t dim = adaptor.getDim();
  if (failed(verifyDim(loc, dim, input.getRank())))
    return failure();
  types.push_back(
      RankedTensorType::get(input.getShape(), input.getElementType()));
  return success();
}

LogicalResult TopKOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> loc,
                                       TopKOp::Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  if (input.getRank() == 0)
    return emitOptionalError(loc, "expected rows, found ", input);
  int64_t k = adaptor.getK(), size = input.getShape().back();
  if (k < 1 || k > size)
    return emitOptionalError(loc, "expected 'k' in [1, ", size,
                             "], the elements of a row, found ", k);
  SmallVector<int64_t> shape(input.getShape());
  shape.back() = k;
  types.push_back(RankedTensorType::get(shape, IntegerType::get(context, 64)));
  return success();
}
