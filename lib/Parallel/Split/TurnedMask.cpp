// Columns of masks, turn by turn. A rank has its rows of a mask, and all of
// their columns: those of the keys that have come are a range of them, which
// begins elsewhere on other ranks. In a mask whose columns have gone round as
// far as the keys, it is each rank's own part.

#include "TurnedMask.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

Value parallel::createLowest(OpBuilder &builder, Location loc,
                             RankedTensorType type) {
  auto element = cast<FloatType>(type.getElementType());
  llvm::APFloat lowest = llvm::APFloat::getLargest(element.getFloatSemantics(),
                                                   /*Negative=*/true);
  return nn::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(type, builder.getFloatAttr(element, lowest)));
}

/// The largest number of each row of a mask, or the most negative one where
/// that is -inf.
static Value createLevels(OpBuilder &builder, Location loc, Value mask) {
  auto type = cast<RankedTensorType>(mask.getType());
  SmallVector<int64_t> shape(type.getShape().drop_back());
  Value largest = nn::ReduceOp::create(
      builder, loc, type.clone(shape), nn::ReductionKind::max, mask,
      ArrayRef<int64_t>{kMaskColumns}, /*first=*/false);
  shape.push_back(1);
  type = type.clone(shape);
  largest = nn::ReshapeOp::create(builder, loc, type, largest);
  return nn::MaxOp::create(builder, loc, type, largest,
                           createLowest(builder, loc, type));
}

/// The last `count` columns, then the others.
static Value turnColumns(OpBuilder &builder, Location loc, Value mask,
                         int64_t count) {
  auto type = cast<RankedTensorType>(mask.getType());
  auto cut = [&](int64_t begin, int64_t end) -> Value {
    SmallVector<int64_t> starts(type.getRank(), 0), steps(type.getRank(), 1),
        sizes(type.getShape());
    starts[kMaskColumns] = begin;
    sizes[kMaskColumns] = end - begin;
    return nn::SliceOp::create(builder, loc, type.clone(sizes), mask, starts,
                               sizes, steps);
  };
  int64_t all = type.getDimSize(kMaskColumns), first = all - count;
  return nn::ConcatOp::create(
      builder, loc, ValueRange{cut(first, all), cut(0, first)}, kMaskColumns);
}

Value TurnedMasks::getColumns(Value mask, dist::AllGatherOp keys, int64_t ranks,
                              int64_t turn, OpBuilder &builder) {
  Location loc = builder.getInsertionPoint()->getLoc();
  auto type = cast<RankedTensorType>(mask.getType());
  SmallVector<int64_t> shape(type.getShape());
  int64_t all = shape[kMaskColumns];
  OpBuilder behind(builder.getContext());
  behind.setInsertionPointAfterValue(mask);
  Value range = mask;
  if (turn > 0) {
    Value &known = turned[{mask, turn}];
    if (!known)
      known = turnColumns(behind, loc, mask, turn * (all / ranks));
    range = known;
  }
  shape[kMaskColumns] = all / ranks;
  auto own =
      dist::AllSliceOp::create(builder, loc, type.clone(shape), range,
                               keys.getMesh(), keys.getAxes(), kMaskColumns);
  own->setAttr(dist::kInsertedByAttr,
               builder.getStringAttr("dist-ring-attention"));
  if (type.getElementType().isInteger(1))
    return own;
  Value &level = levels[mask];
  if (!level)
    level = createLevels(behind, loc, mask);
  return nn::ConcatOp::create(builder, loc, ValueRange{level, own},
                              kMaskColumns);
}
