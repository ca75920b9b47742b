// What a step will gather of the weights that ranks share, before it is split:
// for those that decide by bytes and lifetimes.

#ifndef ACCEL_LIB_PARALLEL_GATHERS_H
#define ACCEL_LIB_PARALLEL_GATHERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel::parallel {

/// One gathering of a unit's weights, as `dist-place-gathers` will make it in
/// each micro-batch.
struct Gathering {
  std::string unit;
  /// Who reads it. Where both do, it is kept from one to the other.
  bool inForward = false, inBackward = false;
  /// What a rank has of these weights while they are read, more than its
  /// pieces; with hpZ less what the forward keeps for the backward.
  int64_t bytes = 0;
};

/// The gatherings of an entry of phase `dist` or `decided`, by unit, in the
/// order in which they are made; none where the weights are whole. The entry is
/// not changed. Requires the entry's module to have its mesh.
llvm::SmallVector<Gathering> findGatherings(mlir::func::FuncOp entry);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_GATHERS_H
