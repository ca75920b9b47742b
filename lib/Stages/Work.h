// What the parts of a step take, in one measure: that by which a model is cut
// into chunks, and by which reports compare these.

#ifndef ACCEL_LIB_STAGES_WORK_H
#define ACCEL_LIB_STAGES_WORK_H

#include "mlir/IR/Operation.h"

namespace accel::stages {

/// What moving costs in floating-point operations, roughly, on any processor: a
/// byte that goes to memory or comes from there, one that goes to another rank,
/// and a message. Which of two places a model is cut at hangs on it, and no
/// result does.
inline constexpr double kFlopsPerByteMoved = 16, kFlopsPerByteSent = 64,
                        kFlopsPerMessage = 1e6;

/// Of one execution of an op: its floating-point operations or what it moves,
/// whichever takes longer (Williams, Waterman and Patterson, Roofline, 2009).
/// What one op that goes into kernels hands to another of the same block, their
/// kernel need not move. A collective is a message of what it gives; what is
/// added to a sum moves thrice.
double getWork(mlir::Operation *op);

} // namespace accel::stages

#endif // ACCEL_LIB_STAGES_WORK_H
