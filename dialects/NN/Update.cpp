// Follows gradients to what depends on them.

#include "dialects/NN/Update.h"

using namespace mlir;
using namespace accel;

llvm::DenseSet<Operation *> nn::getUpdateOps(func::FuncOp entry) {
  llvm::DenseSet<Operation *> update;
  for (Operation &op : entry.front().without_terminator())
    if (isa<GradientOp>(op) || llvm::any_of(op.getOperands(), [&](Value value) {
          return update.contains(value.getDefiningOp());
        }))
      update.insert(&op);
  return update;
}
