// What the parts of a step take, in one measure: that by which a model is cut
// into chunks, and by which reports compare these.

#ifndef ACCEL_LIB_STAGES_WORK_H
#define ACCEL_LIB_STAGES_WORK_H

#include "dialects/Interfaces/Cost.h"

namespace accel::stages {

/// What moving costs in floating-point operations, roughly, on any processor: a
/// byte that an op moves, one that goes to another rank, and a message. Which
/// of two places a model is cut at hangs on it, and no result does.
inline constexpr double kFlopsPerByteMoved = 16, kFlopsPerByteSent = 64,
                        kFlopsPerMessage = 1e6;

/// Of one execution of an op: its floating-point operations, and what it moves
/// at that rate.
inline double getWork(mlir::Operation *op) {
  auto cost = mlir::dyn_cast<CostOpInterface>(op);
  return cost ? cost.getFlops() + kFlopsPerByteMoved * cost.getMovedBytes() : 0;
}

} // namespace accel::stages

#endif // ACCEL_LIB_STAGES_WORK_H
