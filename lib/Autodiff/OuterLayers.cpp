// The first and the last layer of a model, whose matrices optimizers of
// matrices (Muon) leave to another.

#include "lib/Autodiff/BuildStep.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

/// The argument that a value is, but for its layout and type.
static Value findSource(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<nn::TransposeOp, nn::ReshapeOp, nn::CastOp, nn::SliceOp>(op))
      return nullptr;
    value = op->getOperand(0);
  }
  return value;
}

/// Adds the matrices of the products that `logits` is made of: the last ones on
/// each way, through ops that are no product.
static void addHeads(Value logits, DenseSet<Value> &into) {
  SmallVector<Value> work = {logits};
  DenseSet<Operation *> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (isa<nn::MatmulOp>(op)) {
      for (Value operand : op->getOperands())
        if (Value source = findSource(operand))
          into.insert(source);
    } else if (op->hasTrait<nn::Elementwise>() ||
               isa<nn::TransposeOp, nn::ReshapeOp, nn::SliceOp, nn::BroadcastOp,
                   nn::ReduceOp, nn::GatherOp>(op)) {
      llvm::append_range(work, op->getOperands());
    }
  }
}

DenseSet<Value> autodiff::findOuterLayers(func::FuncOp entry) {
  DenseSet<Value> outer;
  entry.walk([&](Operation *op) {
    if (auto gather = dyn_cast<nn::GatherOp>(op)) {
      if (Value source = findSource(gather.getTable()))
        outer.insert(source);
    } else if (auto entropy = dyn_cast<nn::CrossEntropyOp>(op)) {
      addHeads(entropy.getLogits(), outer);
    }
  });
  return outer;
}
