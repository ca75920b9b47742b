// Accumulators: what is combined over micro-batches, and what they begin with.

#include "dialects/Dist/Dist.h"

using namespace mlir;
using namespace accel::dist;

LogicalResult AccumulateOp::verify() {
  RankedTensorType from = getInput().getType(), to = getType();
  auto source = ShardingAttr::of(from), target = ShardingAttr::of(to);
  if (!source && !target) {
    if (from != to || !getLayout())
      return emitOpError() << "expected one rank's tensors of one type, and a "
                              "layout, found "
                           << from << " and " << to;
    return success();
  }
  if (!source || !source.getPartial().contains(MeshOp::kMicroBatchAxis))
    return emitOpError() << "expected an input that is partial over '"
                         << MeshOp::kMicroBatchAxis << "', found " << from;
  auto expected = RankedTensorType::get(from.getShape(), from.getElementType(),
                                        getAccumulatedSharding(source));
  if (to != expected || getKind() != source.getReduction())
    return emitOpError() << "expected the "
                         << stringifyReduction(source.getReduction())
                         << " over micro-batches, " << expected << ", found "
                         << stringifyReduction(getKind()) << ", " << to;
  return success();
}

ShardingAttr accel::dist::getAccumulatedSharding(ShardingAttr term) {
  SmallVector<StringAttr> others;
  for (StringAttr axis : term.getPartial().getNames())
    if (axis.getValue() != MeshOp::kMicroBatchAxis)
      others.push_back(axis);
  return ShardingAttr::get(
      term.getContext(), term.getMesh(), term.getDims(),
      AxesAttr::get(term.getContext(), others, /*open=*/false),
      others.empty() ? Reduction::sum : term.getReduction());
}

TypedAttr accel::dist::getIdentity(Reduction kind, Type element) {
  Builder builder(element.getContext());
  if (kind == Reduction::sum)
    return builder.getZeroAttr(element);
  bool least = kind == Reduction::max;
  if (auto type = dyn_cast<FloatType>(element))
    return builder.getFloatAttr(
        type, APFloat::getInf(type.getFloatSemantics(), /*Negative=*/least));
  unsigned width = element.getIntOrFloatBitWidth();
  return builder.getIntegerAttr(element, least
                                             ? APInt::getSignedMinValue(width)
                                             : APInt::getSignedMaxValue(width));
}
