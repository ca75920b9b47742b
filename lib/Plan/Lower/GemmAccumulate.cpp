// Recognises sums of products over micro-batches, and over chunks of rows: gemm
// libraries add to what they find while they store.

#include "GemmAccumulate.h"

#include "dialects/Dist/LossChunks.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

/// Whether `sum` is only the new value of the state that `argument` is the old
/// value of.
static bool isNewValue(Value sum, BlockArgument argument) {
  auto task = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!task || !sum.hasOneUse() || !isa<func::ReturnOp>(*sum.user_begin()))
    return false;
  Attribute state = task.getArgAttr(argument.getArgNumber(), nn::kStateAttr);
  unsigned result = sum.use_begin()->getOperandNumber();
  return state && task.getResultAttr(result, nn::kStateAttr) == state;
}

/// Whether a value is a sum of chunks so far, or the first of them: a product
/// of its own, perhaps widened, or one that others were added to.
static bool isSumSoFar(Value value, const Target &target) {
  Operation *op = value.getDefiningOp();
  if (!op || !value.hasOneUse() || !op->hasAttr(dist::kLossChunkAttr))
    return false;
  if (isa<nn::AddOp>(op))
    return matchGemmAccumulate(op, target).has_value();
  if (auto cast = dyn_cast<nn::CastOp>(op))
    return target.hasEpilogue(Epilogue::Widen) &&
           cast.getType().getElementType().isF32() &&
           cast.getInput().getType().getElementType().isBF16() &&
           cast.getInput().hasOneUse() &&
           cast.getInput().getDefiningOp<nn::MatmulOp>();
  return isa<nn::MatmulOp>(op);
}

std::optional<GemmAccumulate>
accel::plan::matchGemmAccumulate(Operation *op, const Target &target) {
  if (!target.hasEpilogue(Epilogue::Accumulate))
    return std::nullopt;
  auto add = dyn_cast<nn::AddOp>(op);
  if (!add)
    return std::nullopt;
  for (auto [old, term] : {std::pair(add.getLhs(), add.getRhs()),
                           std::pair(add.getRhs(), add.getLhs())}) {
    auto state = dyn_cast<BlockArgument>(old);
    if (state ? !state.hasOneUse() || !isNewValue(add, state)
              : !isSumSoFar(old, target))
      continue;
    if (term.getType().getElementType().isBF16())
      continue; // sums are at least as wide as f32
    Value product = term;
    nn::CastOp cast;
    if (product.hasOneUse() && term.getType().getElementType().isF32() &&
        (cast = product.getDefiningOp<nn::CastOp>())) {
      if (!cast.getInput().getType().getElementType().isBF16())
        continue;
      product = cast.getInput();
    }
    auto matmul = product.getDefiningOp<nn::MatmulOp>();
    if (matmul && product.hasOneUse() &&
        (state || old.getDefiningOp()->isBeforeInBlock(matmul)))
      return GemmAccumulate{matmul, cast, old};
  }
  return std::nullopt;
}
