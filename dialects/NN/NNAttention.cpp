// Type inference of attention and its gradient.

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel::nn;

/// Checks the operands that attention and its gradient share; gives the type of
/// attention's result.
template <typename Adaptor>
static FailureOr<RankedTensorType> checkOperands(std::optional<Location> loc,
                                                 Adaptor adaptor) {
  auto query = cast<RankedTensorType>(adaptor.getQuery().getType());
  auto key = cast<RankedTensorType>(adaptor.getKey().getType());
  auto value = cast<RankedTensorType>(adaptor.getValue().getType());
  if (query.getRank() != 4 || key.getRank() != 4 || value.getRank() != 4)
    return emitOptionalError(loc, "expected tensors of rank 4, found ", query,
                             ", ", key, " and ", value);
  ArrayRef<int64_t> q = query.getShape(), k = key.getShape(),
                    v = value.getShape();
  if (k[0] != q[0] || v[0] != q[0] || k[1] != v[1] || k[2] != v[2] ||
      k[3] != q[3] || k[1] == 0 || q[1] % k[1] != 0 ||
      key.getElementType() != query.getElementType() ||
      value.getElementType() != query.getElementType())
    return emitOptionalError(loc,
                             "expected query [B, H, S, D], key [B, G, T, D] "
                             "and value [B, G, T, E] with G dividing H, found ",
                             query, ", ", key, " and ", value);
  if (adaptor.getMask()) {
    auto mask = cast<RankedTensorType>(adaptor.getMask().getType());
    int64_t full[] = {q[0], q[1], q[2], k[2]};
    bool fits = mask.getRank() == 4 && mask.getDimSize(3) == full[3] &&
                (mask.getElementType().isInteger(1) ||
                 mask.getElementType() == query.getElementType());
    for (int dim = 0; fits && dim < 3; ++dim)
      fits = mask.getDimSize(dim) == 1 || mask.getDimSize(dim) == full[dim];
    if (!fits)
      return emitOptionalError(
          loc,
          "expected a mask of i1 or of the query's element type that "
          "broadcasts to [",
          ArrayRef<int64_t>(full), "], found ", mask);
  }
  return RankedTensorType::get({q[0], q[1], q[2], v[3]},
                               query.getElementType());
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            AttentionOp::Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  FailureOr<RankedTensorType> result = checkOperands(loc, adaptor);
  if (failed(result))
    return failure();
  types.push_back(*result);
  return success();
}

LogicalResult AttentionGradOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> loc,
    AttentionGradOp::Adaptor adaptor, SmallVectorImpl<Type> &types) {
  FailureOr<RankedTensorType> result = checkOperands(loc, adaptor);
  if (failed(result))
    return failure();
  auto gradient = cast<RankedTensorType>(adaptor.getGradient().getType());
  if (gradient.getShape() != result->getShape() ||
      gradient.getElementType() != result->getElementType())
    return emitOptionalError(loc, "expected a gradient of type ", *result,
                             ", found ", gradient);
  for (Value operand :
       {adaptor.getQuery(), adaptor.getKey(), adaptor.getValue()}) {
    auto type = cast<RankedTensorType>(operand.getType());
    types.push_back(
        RankedTensorType::get(type.getShape(), type.getElementType()));
  }
  return success();
}
