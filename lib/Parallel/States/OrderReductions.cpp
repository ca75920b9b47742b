// Says what a gradient is summed over first: micro-batches, or ranks.

#include "GradientOps.h"
#include "lib/Parallel/Passes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_ORDERREDUCTIONSPASS
#include "lib/Parallel/Passes.h.inc"

/// The axes of `from` without those that `drop` names.
static dist::AxesAttr dropAxes(dist::AxesAttr from,
                               function_ref<bool(StringAttr)> drop) {
  SmallVector<StringAttr> kept;
  for (StringAttr axis : from.getNames())
    if (!drop(axis))
      kept.push_back(axis);
  return dist::AxesAttr::get(from.getContext(), kept, /*open=*/false);
}

namespace {
struct OrderReductionsPass
    : impl::OrderReductionsPassBase<OrderReductionsPass> {
  using Base::Base;

  void runInOrder() override {
    if (stage == 0)
      return;
    llvm::SmallSetVector<dist::ReshardOp, 16> sums;
    getOperation().walk([&](nn::GradientOp gradient) {
      sums.insert_range(findGradientSums(gradient));
    });
    for (dist::ReshardOp sum : sums)
      split(sum);
  }

  void split(dist::ReshardOp sum) {
    Value term = sum.getInput();
    auto from = dist::ShardingAttr::of(term.getType());
    auto to = dist::ShardingAttr::of(sum.getType());
    auto isOfMicroBatches = [](StringAttr axis) {
      return axis.getValue() == dist::MeshOp::kMicroBatchAxis;
    };
    auto isSplitOver = [&](StringAttr axis) {
      return llvm::any_of(
          to.getDims(), [&](dist::AxesAttr dim) { return dim.contains(axis); });
    };
    // The rest of the sum is one reduction, at the end of the step.
    bool perStep = stage == 1;
    dist::AxesAttr rest = perStep
                              ? dropAxes(from.getPartial(), isOfMicroBatches)
                              : dropAxes(from.getPartial(), isSplitOver);
    auto middle = dist::ShardingAttr::get(
        sum.getContext(), from.getMesh(),
        perStep ? from.getDims() : to.getDims(), rest, from.getReduction());
    if (middle == from || middle == to)
      return;
    auto type = cast<RankedTensorType>(term.getType());
    OpBuilder builder(sum);
    auto first = dist::ReshardOp::create(
        builder, sum.getLoc(),
        RankedTensorType::get(type.getShape(), type.getElementType(), middle),
        term);
    first->setDiscardableAttrs(sum->getDiscardableAttrDictionary());
    sum.getInputMutable().assign(first);
  }
};
} // namespace
} // namespace accel::parallel
