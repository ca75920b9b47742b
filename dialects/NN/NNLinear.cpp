// Type inference of the matrix product.

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel::nn;

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> loc,
                                         MatmulOp::Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto lhs = cast<RankedTensorType>(adaptor.getLhs().getType());
  auto rhs = cast<RankedTensorType>(adaptor.getRhs().getType());
  if (lhs.getRank() < 2 || rhs.getRank() < 2)
    return emitOptionalError(loc, "expected matrices, found ", lhs, " and ",
                             rhs);
  if (lhs.getElementType() != rhs.getElementType())
    return emitOptionalError(loc, "expected one element type, found ", lhs,
                             " and ", rhs);
  ArrayRef<int64_t> batch = lhs.getShape().drop_back(2);
  if (rhs.getRank() > 2 && rhs.getShape().drop_back(2) != batch)
    return emitOptionalError(loc, "expected batch dimensions [", batch,
                             "] or none in the right operand, found ", rhs);
  auto [m, k] =
      std::pair(lhs.getShape().take_back(2)[0], lhs.getShape().take_back(2)[1]);
  auto [k2, n] =
      std::pair(rhs.getShape().take_back(2)[0], rhs.getShape().take_back(2)[1]);
  if (adaptor.getTransposeLhs())
    std::swap(m, k);
  if (adaptor.getTransposeRhs())
    std::swap(k2, n);
  if (k != k2)
    return emitOptionalError(loc, "expected equal inner sizes, found ", k,
                             " and ", k2);
  SmallVector<int64_t> shape(batch);
  shape.append({m, n});
  types.push_back(RankedTensorType::get(shape, lhs.getElementType()));
  return success();
}
