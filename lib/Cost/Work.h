// What an op of a step takes, in one measure: that by which a model is cut into
// chunks and schedules are compared.

#ifndef ACCEL_LIB_COST_WORK_H
#define ACCEL_LIB_COST_WORK_H

#include "Machine.h"
#include "mlir/IR/Operation.h"

namespace accel::cost {

/// Bytes that an op reads from memory and writes to it. Of a table it reads no
/// more than it gives, and changes no other rows than those that it adds to.
int64_t getTraffic(mlir::Operation *op);

/// Of one execution of an op, as floating-point operations (Machine.h): its own
/// or what it moves, whichever takes longer. What one op that goes into kernels
/// hands to another of the same block, their kernel need not move. A collective
/// is a message of what it gives; what is added to a sum moves thrice.
double getWork(mlir::Operation *op);

} // namespace accel::cost

#endif // ACCEL_LIB_COST_WORK_H
