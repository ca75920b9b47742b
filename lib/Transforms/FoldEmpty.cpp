// What is made of tensors without elements is known without them: nothing
// behind this has to split, prove or run it.

#include "Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace accel::transforms {
#define GEN_PASS_DEF_FOLDEMPTYPASS
#include "lib/Transforms/Passes.h.inc"

static bool isEmpty(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getNumElements() == 0;
}

/// What a reduction of no elements gives; null where the type has no such
/// number.
static Attribute getNeutral(nn::ReductionKind kind, Type element) {
  Builder builder(element.getContext());
  if (kind == nn::ReductionKind::sum)
    return builder.getZeroAttr(element);
  if (kind == nn::ReductionKind::prod)
    return builder.getOneAttr(element);
  bool isLeast = kind == nn::ReductionKind::max;
  if (auto number = dyn_cast<FloatType>(element)) {
    const llvm::fltSemantics &format = number.getFloatSemantics();
    if (!APFloat::semanticsHasInf(format))
      return {};
    return FloatAttr::get(number, APFloat::getInf(format, isLeast));
  }
  unsigned width = element.getIntOrFloatBitWidth();
  if (element.isUnsignedInteger() || width == 1)
    return IntegerAttr::get(element, isLeast ? APInt::getMinValue(width)
                                             : APInt::getMaxValue(width));
  return IntegerAttr::get(element, isLeast ? APInt::getSignedMinValue(width)
                                           : APInt::getSignedMaxValue(width));
}

/// What all elements of a result are where nothing is summed up, or compared;
/// null for other ops.
static Attribute getOfNothing(Operation *op) {
  auto element = getElementTypeOrSelf(op->getResult(0));
  return llvm::TypeSwitch<Operation *, Attribute>(op)
      .Case([&](nn::ReduceOp reduce) {
        return isEmpty(reduce.getInput())
                   ? getNeutral(reduce.getKind(), element)
                   : Attribute();
      })
      .Case<nn::MatmulOp, nn::GroupedMatmulOp, nn::GroupedMatmulGradOp,
            nn::ConvOp, nn::ConvInputGradOp, nn::ConvWeightGradOp>(
          [&](auto product) {
            return isEmpty(product.getLhs())
                       ? getNeutral(nn::ReductionKind::sum, element)
                       : Attribute();
          })
      .Default(Attribute());
}

/// What an op gives that reads an empty tensor, in place of its one result;
/// null where that is not known.
static Value makeOfNothing(Operation *op, OpBuilder &builder) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (Attribute element = getOfNothing(op))
    return nn::ConstantOp::create(builder, op->getLoc(),
                                  DenseElementsAttr::get(type, element));
  if (auto pad = dyn_cast<nn::PadOp>(op); pad && isEmpty(pad.getInput()))
    return nn::BroadcastOp::create(builder, op->getLoc(), type, pad.getValue());
  if (auto add = dyn_cast<nn::ScatterAddOp>(op);
      add && isEmpty(add.getUpdates()))
    return add.getInit();
  return {};
}

namespace {
struct FoldEmptyPass : impl::FoldEmptyPassBase<FoldEmptyPass> {
  using Base::Base;

  void runOnOperation() override {
    llvm::SetVector<Operation *> replaced;
    getOperation().walk([&](Operation *op) {
      if (op->getNumResults() == 0 || isa<nn::ConstantOp>(op) ||
          op->getNumRegions() != 0 || !isMemoryEffectFree(op))
        return;
      OpBuilder builder(op);
      if (llvm::all_of(op->getResults(), isEmpty)) {
        for (Value result : op->getResults())
          result.replaceAllUsesWith(nn::ConstantOp::create(
              builder, op->getLoc(),
              DenseElementsAttr::get(cast<RankedTensorType>(result.getType()),
                                     ArrayRef<Attribute>())));
      } else if (Value known = op->getNumResults() == 1 &&
                                       llvm::any_of(op->getOperands(), isEmpty)
                                   ? makeOfNothing(op, builder)
                                   : Value()) {
        op->getResult(0).replaceAllUsesWith(known);
      } else {
        return;
      }
      replaced.insert(op);
    });
    // What only they read goes, too.
    while (!replaced.empty()) {
      Operation *op = replaced.pop_back_val();
      if (!isOpTriviallyDead(op))
        continue;
      for (Value operand : op->getOperands())
        if (Operation *made = operand.getDefiningOp())
          replaced.insert(made);
      op->erase();
    }
  }
};
} // namespace
} // namespace accel::transforms
