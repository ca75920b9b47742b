// Writes softmax and cross-entropy as reductions of rows. Ranks that have some
// of the classes (of a vocabulary) need of the others but two numbers for each
// row, the largest and the sum of exponentials, and the loss the label's logit:
// they exchange these, and no logits.

#include "ClassRows.h"
#include "dialects/NN/TensorTypes.h"

#include <limits>

using namespace mlir;
using namespace accel;
using namespace accel::parallel;
using nn::ReductionKind;

Value parallel::fillPadding(OpBuilder &builder, Location loc, Value value,
                            int64_t dim, int64_t size, ReductionKind kind) {
  RankedTensorType type = typeOf(value);
  auto indices = RankedTensorType::get(type.getShape(), builder.getI64Type());
  double neutral = kind == ReductionKind::sum ? 0
                   : kind == ReductionKind::max
                       ? -std::numeric_limits<double>::infinity()
                       : std::numeric_limits<double>::infinity();
  auto constant = [&](RankedTensorType of, Attribute number) -> Value {
    return nn::ConstantOp::create(builder, loc, of,
                                  DenseElementsAttr::get(of, number));
  };
  Value isValue =
      nn::CompareOp::create(builder, loc, nn::ComparePredicate::lt,
                            nn::IotaOp::create(builder, loc, indices, dim, 0),
                            constant(indices, builder.getI64IntegerAttr(size)));
  return nn::SelectOp::create(
      builder, loc, isValue, value,
      constant(type, builder.getFloatAttr(type.getElementType(), neutral)));
}

Value ClassRows::splat(RankedTensorType type, int64_t value) const {
  Type element = type.getElementType();
  Attribute number =
      isa<FloatType>(element)
          ? Attribute(builder.getFloatAttr(element, double(value)))
          : Attribute(builder.getIntegerAttr(element, value));
  return make<nn::ConstantOp>(type, DenseElementsAttr::get(type, number));
}

/// Of all classes, those of other ranks among them.
Value ClassRows::reduce(ReductionKind kind, Value value) const {
  SmallVector<int64_t> rows(typeOf(value).getShape());
  if (!axes && rows[dim] != classes)
    value = fillPadding(builder, loc, value, dim, classes, kind);
  rows.erase(rows.begin() + dim);
  Value own = make<nn::ReduceOp>(
      RankedTensorType::get(rows, typeOf(value).getElementType()), kind, value,
      ArrayRef<int64_t>{dim});
  if (!axes)
    return own;
  auto combine =
      kind == ReductionKind::max ? dist::Reduction::max : dist::Reduction::sum;
  return make<dist::AllReduceOp>(own.getType(), combine, own, mesh.getValue(),
                                 axes, TypeAttr());
}

/// What a row has, for each of its classes.
Value ClassRows::expand(Value row, ArrayRef<int64_t> shape) const {
  SmallVector<int64_t> units(typeOf(row).getShape());
  units.insert(units.begin() + dim, 1);
  Type element = typeOf(row).getElementType();
  row = make<nn::ReshapeOp>(RankedTensorType::get(units, element), row);
  return make<nn::BroadcastOp>(RankedTensorType::get(shape, element), row);
}

/// What is at most 0, so that no exponential overflows.
Value ClassRows::shift(Value logits) const {
  Value largest = reduce(ReductionKind::max, logits);
  return make<nn::SubOp>(logits, expand(largest, typeOf(logits).getShape()));
}

/// The classes' numbers.
Value ClassRows::number(ArrayRef<int64_t> shape) const {
  auto type = RankedTensorType::get(shape, builder.getI64Type()),
       scalar = RankedTensorType::get({}, builder.getI64Type());
  Value count = make<nn::IotaOp>(type, dim, 0);
  if (!axes)
    return count;
  Value rank = make<dist::AxisIndexOp>(scalar, mesh.getValue(), axes);
  Value first = make<nn::MulOp>(rank, splat(scalar, shape[dim]));
  return make<nn::AddOp>(count, make<nn::BroadcastOp>(type, first));
}

Value ClassRows::check(Value indices, bool nonNegative) const {
  auto all = RankedTensorType::get({classes}, typeOf(indices).getElementType());
  return make<nn::GatherOp>(typeOf(indices), make<nn::IotaOp>(all, 0, 0),
                            indices, uint64_t(0), IntegerAttr(), nonNegative);
}

Value ClassRows::defineSoftmax(Value input, bool log) const {
  ArrayRef<int64_t> shape = typeOf(input).getShape();
  Value shifted = shift(input);
  Value powers = make<nn::ExpOp>(shifted);
  Value sum = reduce(ReductionKind::sum, powers);
  if (!log)
    return make<nn::DivOp>(powers, expand(sum, shape));
  return make<nn::SubOp>(shifted, expand(make<nn::LogOp>(sum), shape));
}

Value ClassRows::defineCrossEntropy(Value logits, Value labels,
                                    int64_t ignoreIndex) const {
  RankedTensorType own = typeOf(logits);
  auto ofRows =
      RankedTensorType::get(typeOf(labels).getShape(), builder.getI64Type());
  if (labels.getType() != ofRows)
    labels = make<nn::CastOp>(ofRows, labels);
  Value ignored = make<nn::CompareOp>(nn::ComparePredicate::eq, labels,
                                      splat(ofRows, ignoreIndex));
  labels = make<nn::SelectOp>(ignored, splat(ofRows, 0), labels);
  labels = check(labels, /*nonNegative=*/true);
  Value counted = number(own.getShape());
  Value isLabel = make<nn::CompareOp>(nn::ComparePredicate::eq, counted,
                                      expand(labels, own.getShape()));

  Value shifted = shift(logits);
  Value sum = reduce(ReductionKind::sum, make<nn::ExpOp>(shifted));
  // One rank has the label's logit, and the others zeros.
  Value label = reduce(ReductionKind::sum,
                       make<nn::SelectOp>(isLabel, shifted, splat(own, 0)));
  Value each = make<nn::SubOp>(make<nn::LogOp>(sum), label);
  return make<nn::SelectOp>(ignored, splat(typeOf(each), 0), each);
}
