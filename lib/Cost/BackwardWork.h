// What the backward of a forward program will take, before there is one: a cut
// divides both.

#ifndef ACCEL_LIB_COST_BACKWARDWORK_H
#define ACCEL_LIB_COST_BACKWARDWORK_H

#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel::cost {

/// Of a forward entry whose parameters are trained, but for frozen ones.
struct BackwardWork {
  /// By op: the work (Work.h) of its vector-Jacobian product, which is built to
  /// be measured and thrown away. Ops that no gradient passes are not in it.
  llvm::DenseMap<mlir::Operation *, double> work;
  /// What ops have made that these products read: it is kept from the forward.
  /// Not what is another way to read something, or a wider form of it.
  llvm::DenseSet<mlir::Value> kept;
};

/// Whether a step trains it. Null is not trained.
bool isTrained(nn::StateOp state);

/// Leaves the entry as it is. Emits nothing: an op that has no gradient passes
/// none here, and whoever differentiates refuses it.
BackwardWork measureBackward(mlir::func::FuncOp forward);

} // namespace accel::cost

#endif // ACCEL_LIB_COST_BACKWARDWORK_H
