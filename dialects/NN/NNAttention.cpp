// Type inference of attention and its gradient.

#include "Causal.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel::nn;

/// What attention gives.
namespace {
struct AttentionTypes {
  RankedTensorType result, logSumExp;
};
} // namespace

/// Checks the operands that attention and its gradient share.
template <typename Adaptor>
static FailureOr<AttentionTypes> checkOperands(std::optional<Location> loc,
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
    bool isBool = mask.getElementType().isInteger(1);
    bool fits = mask.getRank() == 4 &&
                (mask.getDimSize(3) == full[3] ||
                 (!isBool && mask.getDimSize(3) == full[3] + 1)) &&
                (isBool || mask.getElementType() == query.getElementType());
    for (int dim = 0; fits && dim < 3; ++dim)
      fits = mask.getDimSize(dim) == 1 || mask.getDimSize(dim) == full[dim];
    if (!fits)
      return emitOptionalError(
          loc,
          "expected a mask of i1 or of the query's element type that "
          "broadcasts to [",
          ArrayRef<int64_t>(full), "], found ", mask);
  }
  Type element = query.getElementType();
  return AttentionTypes{
      RankedTensorType::get({q[0], q[1], q[2], v[3]}, element),
      RankedTensorType::get({q[0], q[1], q[2]}, getLogSumExpType(element))};
}

Type accel::nn::getLogSumExpType(Type element) {
  return element.isF64() ? element : Float32Type::get(element.getContext());
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            AttentionOp::Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  FailureOr<AttentionTypes> found = checkOperands(loc, adaptor);
  if (failed(found))
    return failure();
  types.append({found->result, found->logSumExp});
  return success();
}

LogicalResult AttentionGradOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> loc,
    AttentionGradOp::Adaptor adaptor, SmallVectorImpl<Type> &types) {
  FailureOr<AttentionTypes> found = checkOperands(loc, adaptor);
  if (failed(found))
    return failure();
  auto check = [&](const char *what, Value value, RankedTensorType expected) {
    auto type = value ? cast<RankedTensorType>(value.getType()) : expected;
    if (type.getShape() == expected.getShape() &&
        type.getElementType() == expected.getElementType())
      return success();
    return emitOptionalError(loc, "expected ", what, " of type ", expected,
                             ", found ", type);
  };
  if (failed(check("an output", adaptor.getOutput(), found->result)) ||
      failed(
          check("a log-sum-exp", adaptor.getLogSumExp(), found->logSumExp)) ||
      failed(check("a gradient", adaptor.getGradient(), found->result)) ||
      failed(check("a gradient of the log-sum-exp",
                   adaptor.getLogSumExpGradient(), found->logSumExp)))
    return failure();
  for (Value operand :
       {adaptor.getQuery(), adaptor.getKey(), adaptor.getValue()}) {
    auto type = cast<RankedTensorType>(operand.getType());
    types.push_back(
        RankedTensorType::get(type.getShape(), type.getElementType()));
  }
  return success();
}

LogicalResult AttentionOp::verify() { return accel::verifyOffsets(*this); }
LogicalResult AttentionGradOp::verify() { return accel::verifyOffsets(*this); }
