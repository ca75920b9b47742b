// What the forward of a micro-batch leaves for its backward.

#ifndef ACCEL_LIB_PLAN_MEMORY_KEPTVALUES_H
#define ACCEL_LIB_PLAN_MEMORY_KEPTVALUES_H

#include "InFlight.h"
#include "lib/Plan/BufferTable.h"

#include <vector>

namespace accel::plan {

/// A value that one body of the forward has whole, and bodies of the backward
/// read.
struct KeptValue {
  mutable BufferOp buffer; // op handles are pointers
  mutable BodyOp forward;
  /// The op of that body behind which it is whole, and stays as it is.
  mlir::Operation *maker;
  ViewAttr kind; ///< a view of it, in its elements
  /// Of each body of the backward that reads it, the first op that does.
  llvm::SmallVector<mlir::Operation *, 2> readers;
  /// All bodies that touch it, and those that are none of the backward.
  llvm::SmallVector<BodyUse, 2> uses, otherUses;
};

/// The kept values of a program that another place can be given: written as a
/// whole, in the forward alone or by a message that the forward waits for, and
/// made of a batch, since what is made of weights alone serves every batch.
/// What lies in pieces, or is read by anything else but messages, is left out.
/// In the order of the bodies, and of the makers in them. Requires that buffers
/// hold one value each and have no copies yet.
std::vector<KeptValue> findKeptValues(ProgramOp program,
                                      const BufferTable &buffers);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_MEMORY_KEPTVALUES_H
