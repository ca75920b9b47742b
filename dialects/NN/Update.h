// What the update of a step is: said here, for all who ask.

#ifndef ACCEL_DIALECTS_NN_UPDATE_H
#define ACCEL_DIALECTS_NN_UPDATE_H

#include "dialects/NN/NN.h"
#include "llvm/ADT/DenseSet.h"

namespace accel::nn {

/// The ops of an entry of one block that are its update: finished gradients
/// (`nn.gradient`), and what depends on one. It runs once in a step, when all
/// micro-batches have run. One sweep.
llvm::DenseSet<mlir::Operation *> getUpdateOps(mlir::func::FuncOp entry);

} // namespace accel::nn

#endif // ACCEL_DIALECTS_NN_UPDATE_H
