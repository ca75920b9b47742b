// Type inference of convolutions and their gradients.

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel::nn;

namespace {
/// What the three ops say alike: two tensors of dimensions of space behind
/// those of samples, groups and channels.
class Inference {
public:
  template <typename Adaptor>
  Inference(std::optional<Location> loc, Adaptor adaptor)
      : loc(loc), lhs(cast<RankedTensorType>(adaptor.getLhs().getType())),
        rhs(cast<RankedTensorType>(adaptor.getRhs().getType())),
        sizes(adaptor.getSizes()), strides(adaptor.getStrides()),
        dilations(adaptor.getDilations()), low(adaptor.getLow()) {}

  LogicalResult verify() const {
    size_t space = sizes.size();
    if (space < 1 || space > 3)
      return emitOptionalError(
          loc, "expected one to three dimensions of space, found ", space);
    if (strides.size() != space || dilations.size() != space ||
        low.size() != space)
      return emitOptionalError(
          loc, "expected strides, dilations and low paddings of ", space,
          " dimensions of space, found ", strides.size(), ", ",
          dilations.size(), " and ", low.size());
    if (lhs.getRank() != rhs.getRank() ||
        (lhs.getRank() != int64_t(space) + 2 && !hasGroups()))
      return emitOptionalError(loc, "expected operands of ", space + 2,
                               " dimensions, or of ", space + 3,
                               " with groups, found ", lhs, " and ", rhs);
    if (lhs.getElementType() != rhs.getElementType())
      return emitOptionalError(loc, "expected one element type, found ", lhs,
                               " and ", rhs);
    auto isBelow = [&](int64_t least) {
      return [least](int64_t value) { return value < least; };
    };
    if (llvm::any_of(strides, isBelow(1)) ||
        llvm::any_of(dilations, isBelow(1)))
      return emitOptionalError(
          loc, "expected strides and dilations of at least 1, found [", strides,
          "] and [", dilations, "]");
    if (llvm::any_of(low, isBelow(0)) || llvm::any_of(sizes, isBelow(0)))
      return emitOptionalError(
          loc, "expected low paddings and sizes of at least 0, found [", low,
          "] and [", sizes, "]");
    return success();
  }
  bool hasGroups() const { return lhs.getRank() == int64_t(sizes.size()) + 3; }

  /// Whether a dimension of each operand has one size.
  LogicalResult verifyCommon(StringRef what, int64_t ofLhs,
                             int64_t ofRhs) const {
    int64_t lhsSize = lhs.getDimSize(ofLhs), rhsSize = rhs.getDimSize(ofRhs);
    if (lhsSize == rhsSize)
      return success();
    return emitOptionalError(loc, "expected as many ", what, ", found ",
                             lhsSize, " and ", rhsSize);
  }

  /// The result: these dimensions, and the sizes of space.
  void addResult(ArrayRef<int64_t> leading,
                 SmallVectorImpl<Type> &types) const {
    SmallVector<int64_t> shape(leading);
    llvm::append_range(shape, sizes);
    types.push_back(RankedTensorType::get(shape, lhs.getElementType()));
  }

  std::optional<Location> loc;
  RankedTensorType lhs, rhs;
  ArrayRef<int64_t> sizes, strides, dilations, low;
};
} // namespace

LogicalResult ConvOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> loc,
                                       ConvOp::Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  Inference of(loc, adaptor);
  if (failed(of.verify()))
    return failure();
  int64_t groups = of.hasGroups();
  if ((groups && failed(of.verifyCommon("groups", 1, 0))) ||
      failed(of.verifyCommon("channels", 1 + groups, 1 + groups)))
    return failure();
  SmallVector<int64_t> leading(of.lhs.getShape().take_front(1 + groups));
  leading.push_back(of.rhs.getDimSize(groups));
  of.addResult(leading, types);
  return success();
}

LogicalResult ConvInputGradOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> loc,
    ConvInputGradOp::Adaptor adaptor, SmallVectorImpl<Type> &types) {
  Inference of(loc, adaptor);
  if (failed(of.verify()))
    return failure();
  int64_t groups = of.hasGroups();
  if ((groups && failed(of.verifyCommon("groups", 1, 0))) ||
      failed(of.verifyCommon("channels", 1 + groups, groups)))
    return failure();
  SmallVector<int64_t> leading(of.lhs.getShape().take_front(1 + groups));
  leading.push_back(of.rhs.getDimSize(1 + groups));
  of.addResult(leading, types);
  return success();
}

LogicalResult ConvWeightGradOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> loc,
    ConvWeightGradOp::Adaptor adaptor, SmallVectorImpl<Type> &types) {
  Inference of(loc, adaptor);
  if (failed(of.verify()))
    return failure();
  int64_t groups = of.hasGroups();
  if (failed(of.verifyCommon("samples", 0, 0)) ||
      (groups && failed(of.verifyCommon("groups", 1, 1))))
    return failure();
  SmallVector<int64_t> leading(of.lhs.getShape().slice(1, groups));
  leading.push_back(of.rhs.getDimSize(1 + groups));
  leading.push_back(of.lhs.getDimSize(1 + groups));
  of.addResult(leading, types);
  return success();
}
