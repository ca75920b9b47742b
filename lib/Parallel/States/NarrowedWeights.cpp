// Follows what is made of a weight element by element to where it is smaller.

#include "NarrowedWeights.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

bool parallel::isNarrowing(Operation *op) {
  auto cast = dyn_cast<nn::CastOp>(op);
  return cast && cast.getType().getElementTypeBitWidth() <
                     cast.getInput().getType().getElementTypeBitWidth();
}

bool parallel::isRepeated(Value value) {
  SplatElementsAttr splat;
  return value.getDefiningOp<nn::BroadcastOp>() ||
         matchPattern(value, m_Constant(&splat));
}

/// Whether an op makes each element of one of a weight, its first operand, and
/// of what is repeated.
static bool isOfEachElement(Operation *op) {
  return op->hasTrait<nn::Elementwise>() && op->getNumResults() == 1 &&
         op->getNumOperands() > 0 &&
         llvm::all_of(op->getOperands().drop_front(), isRepeated);
}

SmallVector<Operation *> parallel::findRounding(Value rounded) {
  SmallVector<Operation *> made;
  Operation *op = rounded.getDefiningOp();
  if (!op || !isNarrowing(op))
    return {};
  for (; op; op = op->getOperand(0).getDefiningOp()) {
    if (!isOfEachElement(op))
      return {};
    made.push_back(op);
  }
  std::reverse(made.begin(), made.end());
  return made;
}

bool parallel::leadsToNarrowing(OpOperand &use) {
  Operation *op = use.getOwner();
  if (use.getOperandNumber() != 0 || !isOfEachElement(op))
    return false;
  return isNarrowing(op) ||
         llvm::any_of(op->getResult(0).getUses(), leadsToNarrowing);
}

/// Adds where a read ends; false if it does not end in what is smaller.
static bool follow(OpOperand &use, const GradientOps &ops,
                   NarrowedReads &into) {
  Operation *op = use.getOwner();
  if (use.getOperandNumber() != 0 || !ops.contains(op))
    return false;
  if (auto reduce = dyn_cast<nn::ReduceOp>(op)) {
    auto reducesOn = [](Operation *reader) {
      return isa<nn::ReduceOp>(reader);
    };
    if (!llvm::all_of(op->getUsers(), reducesOn)) {
      into.reduced.insert(op);
      return true;
    }
  } else if (!isOfEachElement(op)) {
    return false;
  } else if (isNarrowing(op)) {
    into.rounded.insert(op);
    return true;
  }
  return !op->use_empty() &&
         llvm::all_of(op->getResult(0).getUses(),
                      [&](OpOperand &next) { return follow(next, ops, into); });
}

NarrowedReads parallel::findNarrowedReads(Value weight,
                                          const GradientOps &ops) {
  NarrowedReads found;
  for (OpOperand &use : weight.getUses()) {
    NarrowedReads ends = found;
    if (isNarrowing(use.getOwner()) || !follow(use, ops, ends))
      continue;
    ends.reads.push_back(&use);
    found = std::move(ends);
  }
  if (found.rounded.empty())
    return {};
  return found;
}
