// The builders that take more than a line.

#include "NNBuilder.h"

#include <limits>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

Value NNBuilder::splat(RankedTensorType type, double value) const {
  Attribute element;
  if (auto floatType = dyn_cast<FloatType>(type.getElementType()))
    element = FloatAttr::get(floatType, value);
  else
    element =
        IntegerAttr::get(type.getElementType(), static_cast<int64_t>(value));
  return nn::ConstantOp::create(builder, loc,
                                DenseElementsAttr::get(type, element));
}

static Location gradientLoc(Location location) {
  MLIRContext *context = location.getContext();
  return FusedLoc::get(
      context, {location, NameLoc::get(StringAttr::get(context, "gradient"))});
}

Location autodiff::gradientLoc(Operation *op) {
  return ::gradientLoc(op->getLoc());
}

Location autodiff::gradientLoc(Value value) {
  return ::gradientLoc(value.getLoc());
}

Value NNBuilder::numbers(ArrayRef<double> values, Type element) const {
  SmallVector<Attribute> rounded;
  for (double value : values)
    rounded.push_back(FloatAttr::get(element, value));
  return nn::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(
          RankedTensorType::get(int64_t(values.size()), element), rounded));
}

Value NNBuilder::iota(ArrayRef<int64_t> shape, int64_t dim) const {
  return make<nn::IotaOp>(RankedTensorType::get(shape, builder.getI64Type()),
                          dim);
}

Value NNBuilder::reshape(Value value, ArrayRef<int64_t> shape) const {
  if (typeOf(value).getShape() == shape)
    return value;
  return make<nn::ReshapeOp>(
      RankedTensorType::get(shape, typeOf(value).getElementType()), value);
}

Value NNBuilder::broadcast(Value value, ArrayRef<int64_t> shape) const {
  if (typeOf(value).getShape() == shape)
    return value;
  return make<nn::BroadcastOp>(
      RankedTensorType::get(shape, typeOf(value).getElementType()), value);
}

Value NNBuilder::sumTo(Value value, ArrayRef<int64_t> shape) const {
  ArrayRef<int64_t> from = typeOf(value).getShape();
  int64_t added = from.size() - shape.size();
  SmallVector<int64_t> dims;
  for (auto [dim, size] : llvm::enumerate(from))
    if (static_cast<int64_t>(dim) < added || shape[dim - added] != size)
      dims.push_back(dim);
  // Of what is summed on both sides of what stays (channels) rows come first,
  // so that kernels have rows.
  SmallVector<int64_t> rows;
  for (int64_t last = from.size(); !dims.empty() && dims.back() == last - 1;
       --last)
    rows.insert(rows.begin(), dims.pop_back_val());
  return reshape(sum(sum(value, rows), dims), shape);
}

Value NNBuilder::sum(Value value, ArrayRef<int64_t> dims) const {
  return dims.empty() ? value
                      : make<nn::ReduceOp>(nn::ReductionKind::sum, value, dims,
                                           /*first=*/false);
}

Value NNBuilder::expand(Value value, ArrayRef<int64_t> dims,
                        ArrayRef<int64_t> shape) const {
  if (typeOf(value).getRank() == 0)
    return broadcast(value, shape);
  SmallVector<int64_t> ones(shape);
  for (int64_t dim : dims)
    ones[dim] = 1;
  return broadcast(reshape(value, ones), shape);
}

Value NNBuilder::swapLast(Value value) const {
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(value).getRank()));
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return make<nn::TransposeOp>(value, order);
}

Value NNBuilder::i64(int64_t value) const {
  return nn::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(scalarType(builder.getI64Type()), value));
}

Value NNBuilder::cast(Value value, Type element) const {
  RankedTensorType type = typeOf(value);
  if (type.getElementType() == element)
    return value;
  return make<nn::CastOp>(RankedTensorType::get(type.getShape(), element),
                          value);
}

Value NNBuilder::spread(Value scalar, ArrayRef<int64_t> shape) const {
  return broadcast(scalar, shape);
}

Value NNBuilder::like(Value scalar, Value like) const {
  RankedTensorType type = typeOf(like);
  return spread(cast(scalar, type.getElementType()), type.getShape());
}

Value NNBuilder::sumFrom(Value value, int64_t from) const {
  int64_t rank = typeOf(value).getRank();
  return from < rank ? sum(value, llvm::to_vector(llvm::seq(from, rank)))
                     : value;
}

Value NNBuilder::toScalar(Value value) const { return reshape(value, {}); }

Value NNBuilder::isFinite(Value scalar) const {
  // |NaN| < inf does not hold either.
  Value size = make<nn::AbsOp>(scalar);
  return compare(
      nn::ComparePredicate::lt, size,
      splat(typeOf(scalar), std::numeric_limits<double>::infinity()));
}
