// Finds forward and backward from the ends: what outputs and gradients need.

#include "GradientOps.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

/// Adds what `work` is computed from, up to gradients and what `known` has.
static void addProducers(SmallVector<Value> work,
                         const DenseSet<Operation *> &known,
                         DenseSet<Operation *> &into) {
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (op && !isa<nn::GradientOp>(op) && !known.contains(op) &&
        into.insert(op).second)
      llvm::append_range(work, op->getOperands());
  }
}

parallel::GradientOps::GradientOps(func::FuncOp entry) {
  SmallVector<Value> outputs, gradients;
  for (OpOperand &result : entry.front().getTerminator()->getOpOperands())
    if (entry.getResultAttr(result.getOperandNumber(), nn::kOutputAttr))
      outputs.push_back(result.get());
  for (auto gradient : entry.getOps<nn::GradientOp>())
    gradients.push_back(gradient.getInput());
  addProducers(std::move(outputs), {}, forward);
  addProducers(std::move(gradients), forward, backward);
}
