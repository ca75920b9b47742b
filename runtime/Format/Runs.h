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

/// Which turns of a loop are looked at where what follows from them holds for
/// all: ProofTurns in dialects/Plan/RunList.h says which, and why.
class ProofTurns {
public:
  explicit ProofTurns(const Program &program) {
    for (const BufferPlan &buffer : program.buffers)
      copies = std::max(copies, buffer.slots);
  }

  /// Of others that are listed, records and waits alone.
  bool isWhole(int64_t turn, int64_t trips) const {
    return turn < 2 * copies || turn >= trips - copies;
  }
  bool isListed(int64_t turn, int64_t trips) const {
    return isWhole(turn, trips) || turn >= trips - 2 * copies;
  }
  /// How many are listed.
  int64_t count(int64_t trips) const { return std::min(trips, 4 * copies); }

private:
  int64_t copies = 1;
};

} // namespace accel::rt::format

#endif // ACCEL_RUNTIME_FORMAT_RUNS_H
