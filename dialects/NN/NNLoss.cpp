// Type inference of the losses.

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel::nn;

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *context,
                                               std::optional<Location> loc,
                                               CrossEntropyOp::Adaptor adaptor,
                                               SmallVectorImpl<Type> &types) {
  auto logits = cast<RankedTensorType>(adaptor.getLogits().getType());
  auto labels = cast<RankedTensorType>(adaptor.getLabels().getType());
  if (logits.getRank() < 1 ||
      logits.getShape().drop_back() != labels.getShape())
    return emitOptionalError(loc,
                             "expected labels of the logits' leading "
                             "dimensions, found ",
                             labels, " for ", logits);
  types.push_back(
      RankedTensorType::get(labels.getShape(), logits.getElementType()));
  return success();
}
