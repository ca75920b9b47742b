// Type inference of matrix products.

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
  Type element = lhs.getElementType();
  auto hasOctets = [](Type type) { return type.getIntOrFloatBitWidth() == 8; };
  if (hasOctets(element) && hasOctets(rhs.getElementType()))
    element = Float32Type::get(context);
  else if (element != rhs.getElementType())
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
  types.push_back(RankedTensorType::get(shape, element));
  return success();
}

/// Operands of a grouped product: rows of the left one, and a group for each.
static LogicalResult verifyRows(std::optional<Location> loc,
                                RankedTensorType lhs, RankedTensorType rhs,
                                RankedTensorType groups) {
  if (lhs.getRank() != 2)
    return emitOptionalError(loc, "expected rows [R, K], found ", lhs);
  if (lhs.getElementType() != rhs.getElementType())
    return emitOptionalError(loc, "expected one element type, found ", lhs,
                             " and ", rhs);
  if (groups.getRank() != 1 || groups.getDimSize(0) != lhs.getDimSize(0))
    return emitOptionalError(loc, "expected a group for each of ",
                             lhs.getDimSize(0), " rows, found ", groups);
  return success();
}

LogicalResult GroupedMatmulOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> loc,
    GroupedMatmulOp::Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto lhs = cast<RankedTensorType>(adaptor.getLhs().getType());
  auto rhs = cast<RankedTensorType>(adaptor.getRhs().getType());
  if (failed(verifyRows(loc, lhs, rhs,
                        cast<RankedTensorType>(adaptor.getGroups().getType()))))
    return failure();
  if (rhs.getRank() != 3)
    return emitOptionalError(loc, "expected a matrix for each group, found ",
                             rhs);
  int64_t k = rhs.getDimSize(1), n = rhs.getDimSize(2);
  if (adaptor.getTransposeRhs())
    std::swap(k, n);
  if (k != lhs.getDimSize(1))
    return emitOptionalError(loc, "expected equal inner sizes, found ",
                             lhs.getDimSize(1), " and ", k);
  types.push_back(
      RankedTensorType::get({lhs.getDimSize(0), n}, lhs.getElementType()));
  return success();
}

LogicalResult GroupedMatmulGradOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> loc,
    GroupedMatmulGradOp::Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto lhs = cast<RankedTensorType>(adaptor.getLhs().getType());
  auto rhs = cast<RankedTensorType>(adaptor.getRhs().getType());
  if (failed(verifyRows(loc, lhs, rhs,
                        cast<RankedTensorType>(adaptor.getGroups().getType()))))
    return failure();
  if (rhs.getRank() != 2 || rhs.getDimSize(0) != lhs.getDimSize(0))
    return emitOptionalError(loc, "expected as many rows, found ", lhs, " and ",
                             rhs);
  int64_t groups = adaptor.getNumGroups();
  if (groups < 1)
    return emitOptionalError(loc, "expected at least one group, found ",
                             groups);
  types.push_back(RankedTensorType::get(
      {groups, lhs.getDimSize(1), rhs.getDimSize(1)}, lhs.getElementType()));
  return success();
}

LogicalResult NewtonSchulzOp::inferReturnTypes(MLIRContext *context,
                                               std::optional<Location> loc,
                                               NewtonSchulzOp::Adaptor adaptor,
                                               SmallVectorImpl<Type> &types) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  if (input.getRank() < 2)
    return emitOptionalError(loc, "expected matrices, found ", input);
  if (adaptor.getCoefficients().size() != 3)
    return emitOptionalError(loc, "expected coefficients a, b and c, found ",
                             adaptor.getCoefficients().size());
  if (static_cast<int64_t>(adaptor.getSteps()) < 1)
    return emitOptionalError(loc, "expected at least one step, found ",
                             static_cast<int64_t>(adaptor.getSteps()));
  types.push_back(
      RankedTensorType::get(input.getShape(), input.getElementType()));
  return success();
}

LogicalResult DealRowsOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location> loc,
                                           DealRowsOp::Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  auto groups = cast<RankedTensorType>(adaptor.getGroups().getType());
  auto rank = cast<RankedTensorType>(adaptor.getRank().getType());
  Type index = IntegerType::get(context, 64);
  if (groups.getElementType() != index || rank.getElementType() != index ||
      groups.getRank() != 1 || rank.getRank() != 0)
    return emitOptionalError(loc,
                             "expected groups [R] and a rank, of i64, found ",
                             groups, " and ", rank);
  int64_t ranks = adaptor.getRanks(), room = adaptor.getRoom(),
          count = adaptor.getNumGroups();
  if (ranks < 1 || groups.getDimSize(0) % ranks != 0 || count < 1 ||
      count % ranks != 0 || room < 1)
    return emitOptionalError(loc, "expected rows and groups that ", ranks,
                             " ranks divide, and room, found ",
                             groups.getDimSize(0), ", ", count, " and ", room);
  auto make = [&](int64_t size) {
    types.push_back(RankedTensorType::get({size}, index));
  };
  make(room);
  make(room);
  make(groups.getDimSize(0) / ranks);
  return success();
}
