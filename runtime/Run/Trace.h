// The trace of a run (--trace): each rank notes on a tape what it does, and
// when the run is over, however it ended, the parent writes all tapes as one
// file for chrome://tracing and Perfetto.

#ifndef ACCEL_RUNTIME_RUN_TRACE_H
#define ACCEL_RUNTIME_RUN_TRACE_H

#include "Data/AtomicFile.h"
#include "Execute/Tape.h"
#include "accel-rt/PlanFormat.h"

#include <functional>

namespace accel::rt {

class Trace {
public:
  Trace() = default;
  ~Trace();
  Trace(const Trace &) = delete;
  Trace &operator=(const Trace &) = delete;

  /// Makes the file, without a name yet, and a tape for each rank, before these
  /// are forked. Errors: no such folder, not writable, no memory.
  Status create(const std::string &path, int64_t ranks);
  Tape &tape(int64_t rank) const { return tapes[rank]; }

  /// Writes the file once no rank lives any more. The steps of the run are
  /// those after `finishedSteps`. `warn` hears of calls that had no room; may
  /// be empty. Errors: the disk's; then there is no file, or the one that was.
  Status write(const Executable &plan, int64_t finishedSteps,
               const std::function<void(const std::string &)> &warn);

private:
  AtomicFile file;
  Tape *tapes = nullptr;
  int64_t ranks = 0;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_TRACE_H
