// List scheduling: whenever a rank is free it runs the task that a policy likes
// best of those that are ready and for which there is memory.

#ifndef ACCEL_LIB_PIPELINE_LISTSCHEDULE_H
#define ACCEL_LIB_PIPELINE_LISTSCHEDULE_H

#include "Costs.h"
#include <limits>

namespace accel::pipeline {

/// What each rank may allocate for activations: slots of all of its chunks, and
/// their bytes.
struct MemoryCap {
  int64_t slots = std::numeric_limits<int64_t>::max();
  int64_t bytes = std::numeric_limits<int64_t>::max();
};

/// What a rank prefers. Weight gradients come last: nothing waits for them.
struct Policy {
  enum class First {
    Backward,  ///< What frees memory and feeds the ranks before.
    Forward,   ///< What feeds the ranks behind, until memory is full.
    Alternate, ///< The one that it has not just done, as 1F1B does.
  };
  First first = First::Backward;
  bool isSplit = true; ///< Backwards run in two parts.
  /// Of a task's duration: so soon must a preferred one be ready for the rank
  /// to wait for it instead. A task once begun is not interrupted.
  double patience = 0;
  /// Of several alike the one of the last chunk, which brings a micro-batch
  /// nearer its end; otherwise that of the first micro-batch.
  bool isDeepFirst = true;
};

struct ListSchedule {
  Schedule schedule;
  double seconds = 0; ///< If transfers wait for nothing but their values.
};

/// Each chunk takes micro-batches in their order, so that slots are filled and
/// emptied in turn. It has `limits` slots at most, and those that it has once
/// used stay its own; one is its own from the start, so that the first
/// micro-batch that is under way can always go on. Requires that `cap` allows
/// one slot of each chunk, and limits of 1 or more.
ListSchedule makeListSchedule(const Placement &placement, int64_t microBatches,
                              llvm::ArrayRef<Edge> edges, const Costs &costs,
                              MemoryCap cap, llvm::ArrayRef<int64_t> limits,
                              Policy policy);

} // namespace accel::pipeline

#endif // ACCEL_LIB_PIPELINE_LISTSCHEDULE_H
