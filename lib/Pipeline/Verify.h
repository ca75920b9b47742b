// The proof that a step ends, and that its tasks find what they need where they
// look for it.

#ifndef ACCEL_LIB_PIPELINE_VERIFY_H
#define ACCEL_LIB_PIPELINE_VERIFY_H

#include "Slots.h"

namespace accel::pipeline {

/// Proves of a step on all ranks, when a send ends with its receive
/// (rendezvous) and a group with its last transfer, whatever anything takes:
///
/// - each chunk runs on each micro-batch once forward, and once backward, whole
///   or in its two parts, on the rank that the placement says;
/// - each task runs after what it needs;
/// - each value that goes to another rank is posted once by its sender and once
///   by its receiver, and nothing else is; both list what one rank gives the
///   other in the same order;
/// - no slot is written while it is in use;
/// - it ends: no rank waits for one that waits for it.
///
/// The error is of the first that does not hold, and names rank, position,
/// task, what was expected and what was found. Nothing is required of the
/// arguments.
llvm::Error verify(const Schedule &schedule, llvm::ArrayRef<Edge> edges,
                   const Slots &slots, const Posting &posting);

/// The same of tasks and edges alone, where slots are no matter and nothing is
/// posted: each task is there once, on its rank, after what it needs, and the
/// step ends.
llvm::Error verifyOrder(const Schedule &schedule, llvm::ArrayRef<Edge> edges);

} // namespace accel::pipeline

#endif // ACCEL_LIB_PIPELINE_VERIFY_H
