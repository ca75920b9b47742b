// The runs of an entry, for checks: all of them whatever the turn, and how many
// turns of a loop say what all say.

#ifndef ACCEL_RUNTIME_FORMAT_RUNS_H
#define ACCEL_RUNTIME_FORMAT_RUNS_H

#include "accel-rt/PlanFormat.h"

#include <algorithm>

namespace accel::rt::format {

/// Calls `f(run, loop)` for every run, once, whatever the loop's turns.
template <class F> void forEachRun(const Entry &entry, F &&f) {
  for (const Loop &loop : entry.loops)
    for (const Segment &segment : loop.segments)
      for (const Run &run : segment.runs)
        f(run, loop);
}

/// Turns of a loop after which nothing new comes: see kProofTurns in
/// dialects/Plan/RunList.h, which says why.
inline int64_t proofTurns(const Program &program) {
  int64_t slots = 1;
  for (const BufferPlan &buffer : program.buffers)
    slots = std::max(slots, buffer.slots);
  return 2 * slots;
}

} // namespace accel::rt::format

#endif // ACCEL_RUNTIME_FORMAT_RUNS_H
