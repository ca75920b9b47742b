// Finds forward and backward from the ends: what outputs and gradients need.

#include "GradientOps.h"

#include "dialects/NN/Update.h"
#include "lib/Parallel/Propagation/FactorAxes.h"

using namespace mlir;
using namespace accel;

/// Adds what `work` is computed from, but for what `others` has.
static void addProducers(SmallVector<Value> work,
                         const DenseSet<Operation *> &others,
                         DenseSet<Operation *> &into) {
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (op && !others.contains(op) && into.insert(op).second)
      llvm::append_range(work, op->getOperands());
  }
}

parallel::GradientOps::GradientOps(func::FuncOp entry) {
  // What comes after a gradient is the update, outputs (its norm) or not.
  DenseSet<Operation *> others = nn::getUpdateOps(entry);
  SmallVector<Value> outputs, gradients;
  for (auto gradient : entry.front().getOps<nn::GradientOp>())
    gradients.push_back(gradient.getInput());
  for (OpOperand &result : entry.front().getTerminator()->getOpOperands())
    if (entry.getResultAttr(result.getOperandNumber(), nn::kOutputAttr))
      outputs.push_back(result.get());
  addProducers(std::move(outputs), others, forward);
  others.insert(forward.begin(), forward.end());
  addProducers(std::move(gradients), others, backward);
}

SmallVector<dist::ReshardOp>
parallel::findGradientSums(nn::GradientOp gradient) {
  SmallVector<dist::ReshardOp> sums;
  llvm::SetVector<Value> work;
  work.insert(gradient.getInput());
  for (size_t next = 0; next < work.size(); ++next) {
    Operation *op = work[next].getDefiningOp();
    // Micro-batches are summed up behind what is summed over ranks in each.
    if (auto total = dyn_cast_if_present<dist::AccumulateOp>(op))
      op = total.getInput().getDefiningOp<dist::ReshardOp>();
    if (auto sum = dyn_cast_if_present<dist::ReshardOp>(op)) {
      // The smallest numbers of a sequence are combined on the way, too.
      auto from = dist::ShardingAttr::of(sum.getInput().getType());
      if (from.isPartial() && from.getReduction() == dist::Reduction::sum)
        sums.push_back(sum);
    } else if (op && !isWhole(work[next].getType())) {
      work.insert(op->operand_begin(), op->operand_end());
    }
  }
  return sums;
}
