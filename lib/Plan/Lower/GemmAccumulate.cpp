// Recognises sums of products over micro-batches: gemm libraries add to what
// they find while they store.

#include "GemmAccumulate.h"

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
    if (!state || !state.hasOneUse() || !isNewValue(add, state))
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
    if (matmul && product.hasOneUse())
      return GemmAccumulate{matmul, cast, state};
  }
  return std::nullopt;
}
