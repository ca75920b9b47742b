// Rounds weights where a step writes them.

#include "ScaledWeights.h"
#include "Quantize.h"
#include "dialects/NN/Entry.h"

using namespace mlir;
using namespace accel;
using namespace accel::precision;
using autodiff::NNBuilder;

/// What an f16 says of `value` that is scaled by the power of two with which
/// its largest magnitude still is one; in its own type.
static Value roundScaled(const NNBuilder &build, Value value) {
  auto format = Float16Type::get(value.getContext());
  Value scale = buildScale(build, buildAmax(build, value, /*parts=*/1),
                           getLargest(format), ScaleRule::Power2);
  Quantized rounded = quantize(build, value, scale, format);
  Type element = typeOf(value).getElementType();
  return scaleParts(build, build.cast(rounded.codes, element), rounded.inverse);
}

void precision::roundWeights(func::FuncOp step,
                             const llvm::StringSet<> &names) {
  Operation *exit = step.front().getTerminator();
  OpBuilder builder(exit);
  for (OpOperand &result : exit->getOpOperands()) {
    auto state = step.getResultAttrOfType<FlatSymbolRefAttr>(
        result.getOperandNumber(), nn::kStateAttr);
    if (!state || !names.contains(state.getValue()))
      continue;
    // A step that is not done leaves what there was, whatever it is.
    auto isDone = result.get().getDefiningOp<nn::SelectOp>();
    builder.setInsertionPoint(isDone ? isDone.getOperation() : exit);
    NNBuilder build{builder, NameLoc::get(builder.getStringAttr(
                                 "scaled f16 of " + state.getValue()))};
    if (isDone)
      isDone.setOperand(1, roundScaled(build, isDone.getOperand(1)));
    else
      result.set(roundScaled(build, result.get()));
  }
}
