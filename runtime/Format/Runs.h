// Calls a function on every run of an entry: what checks share that do not ask
// in which turn.

#ifndef ACCEL_RUNTIME_FORMAT_RUNS_H
#define ACCEL_RUNTIME_FORMAT_RUNS_H

#include "accel-rt/PlanFormat.h"

namespace accel::rt::format {

/// Calls `f(run, loop)` for every run, once, whatever the loop's turns.
template <class F> void forEachRun(const Entry &entry, F &&f) {
  for (const Loop &loop : entry.loops)
    for (const Segment &segment : loop.segments)
      for (const Run &run : segment.runs)
        f(run, loop);
}

} // namespace accel::rt::format

#endif // ACCEL_RUNTIME_FORMAT_RUNS_H
