// Recognises gradients of weights in mixed precision: sums in f32 that would be
// rounded to bf16, and widened again for who keeps them.

#include "GemmWiden.h"

#include "GemmAccumulate.h"
#include "dialects/Dist/Dist.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

static bool takesAsItIs(OpOperand &use, const Target &target) {
  Operation *reader = use.getOwner();
  if (auto sum = matchGemmAccumulate(reader, target))
    return sum->onto == use.get();
  if (auto scatter = dyn_cast<nn::ScatterAddOp>(reader))
    return use.get() == scatter.getInit() && use.get() != scatter.getUpdates();
  // A call is of a kernel that was formed without the cast.
  return isa<func::ReturnOp, func::CallOp, dist::CollectiveOpInterface>(reader);
}

nn::MatmulOp accel::plan::matchGemmWiden(Operation *op, const Target &target) {
  if (!target.hasEpilogue(Epilogue::Widen))
    return {};
  auto cast = dyn_cast<nn::CastOp>(op);
  if (!cast || cast->use_empty() || !cast.getType().getElementType().isF32() ||
      !cast.getInput().getType().getElementType().isBF16() ||
      !cast.getInput().hasOneUse())
    return {};
  if (!llvm::all_of(cast->getUses(),
                    [&](OpOperand &use) { return takesAsItIs(use, target); }))
    return {};
  return cast.getInput().getDefiningOp<nn::MatmulOp>();
}
