// Making tapes and their file before a run, and the file's text after it.

#include "Run/Trace.h"

#include "Base/SystemError.h"
#include "Run/RankTrace.h"

#include <algorithm>
#include <cerrno>
#include <sys/mman.h>

namespace accel::rt {

Trace::~Trace() {
  if (tapes)
    munmap(tapes, static_cast<size_t>(ranks) * sizeof(Tape));
}

Status Trace::create(const std::string &path, int64_t count) {
  ACCEL_RT_RETURN_IF_ERROR(file.create(path, 1));
  ranks = count;
  size_t bytes = static_cast<size_t>(ranks) * sizeof(Tape);
  void *made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED)
    return Status::error("cannot map " + std::to_string(bytes) +
                         " bytes for '--trace': " + systemError(errno));
  tapes = static_cast<Tape *>(made);
  return Status();
}

Status Trace::write(const Executable &plan, int64_t finishedSteps,
                    const std::function<void(const std::string &)> &warn) {
  int64_t origin = INT64_MAX, end = 0;
  uint32_t made = 0, kept = UINT32_MAX;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const Tape &tape = tapes[rank];
    made = std::max(made, tape.callsMade);
    if (tape.callsKept < tape.callsMade)
      kept = std::min(kept, tape.callsKept);
    for (uint32_t i = 0; i < tape.used; ++i) {
      if (tape.spans[i].begin)
        origin = std::min(origin, tape.spans[i].begin);
      end = std::max({end, tape.spans[i].begin, tape.spans[i].end});
    }
  }
  TextFile out(file);
  out.add("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"written_by\":\"acc-run "
          "--trace\"},\"traceEvents\":[");
  for (int64_t rank = 0; rank < ranks; ++rank)
    RankTrace(plan, rank, tapes[rank], finishedSteps, origin, end).write(out);
  out.add("\n]}\n");
  ACCEL_RT_RETURN_IF_ERROR(out.finish());
  ACCEL_RT_RETURN_IF_ERROR(file.complete());
  ACCEL_RT_RETURN_IF_ERROR(file.publish());
  if (kept < made && warn)
    warn("the trace has the first " + std::to_string(kept) + " of " +
         std::to_string(made) +
         " calls, 'load' among them: there is no room for more; run fewer "
         "--steps");
  return Status();
}

} // namespace accel::rt
