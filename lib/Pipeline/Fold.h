// A rank's tasks as loops: what is written down of a schedule is no longer for
// a thousand micro-batches than for ten.

#ifndef ACCEL_LIB_PIPELINE_FOLD_H
#define ACCEL_LIB_PIPELINE_FOLD_H

#include "Schedule.h"

namespace accel::pipeline {

/// Tasks that run turn after turn: on turn t a task's micro-batch is its own
/// and t times `step`. Once where `trips` is 1.
struct Loop {
  int64_t trips = 1;
  int64_t step = 0;
  std::vector<Task> tasks;
};

/// The list as loops, one after another: those that leave out most are taken
/// first, of equals the shortest, then the first; what is before and behind is
/// folded alike. Quadratic in the number of tasks.
std::vector<Loop> fold(llvm::ArrayRef<Task> tasks);

/// The list that was folded.
std::vector<Task> unfold(llvm::ArrayRef<Loop> loops);

} // namespace accel::pipeline

#endif // ACCEL_LIB_PIPELINE_FOLD_H
