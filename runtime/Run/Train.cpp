// The loop over steps. Ranks agree on the end by a word of the shared control
// block that is read after a barrier: whoever saw a bad step wrote it before.

#include "Run/Train.h"

#include "Execute/Executor.h"
#include "State/SavedWeights.h"

#include "State/Checkpoint.h"
#include "State/Resume.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

namespace accel::rt {
namespace {

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace

int64_t finishedSteps(const RankParts &parts) {
  for (const StatePlan &state : parts.job.file.plan().states) {
    if (state.role != "counter" || state.dtype != DType::I64 ||
        !state.shape.empty() ||
        (state.name != "step" && state.name != "counter/step"))
      continue;
    HeldStates held = findHeld(parts.program);
    auto found = held.find(state.name);
    int64_t value = 0;
    if (found != held.end() &&
        !parts.device
             .download(&value, parts.executor.address(found->second->target),
                       {sizeof value})
             .ok())
      return -1; // no number of steps
    return value;
  }
  return parts.job.resumed ? parts.job.resumed->step() : 0;
}

Status trainSteps(const RankParts &parts) {
  Control &control = parts.job.memory.control();
  RankControl &self = parts.job.memory.rank(parts.rank);
  InputOutput &io = parts.io;
  for (int64_t k = 0; k < parts.job.repeats; ++k) {
    io.writing = k + 1 == parts.job.repeats;
    io.writeSeconds = 0;
    io.finishedSteps = control.firstStep + k;
    // One rank decides, before the barrier after which all of them read it.
    if (parts.rank == 0 && control.stopWanted)
      control.interruptedAt = std::min<int64_t>(control.interruptedAt, k);
    ACCEL_RT_RETURN_IF_ERROR(parts.comm.barrier());
    // A rank that is ahead may already have seen step k end badly; that is no
    // news for this one yet.
    int64_t stopped = control.stoppedAt.load();
    if (stopped && stopped <= k)
      break;
    if (control.interruptedAt.load() <= k) {
      bool isSaved =
          k == 0 || parts.job.checkpoints->isDue(io.finishedSteps, false);
      if (!isSaved)
        ACCEL_RT_RETURN_IF_ERROR(parts.checkpoints->save(io.finishedSteps));
      break;
    }
    double start = now();
    ACCEL_RT_RETURN_IF_ERROR(parts.executor.run("step"));
    if (!parts.job.device.executes)
      ACCEL_RT_RETURN_IF_ERROR(noteCounts(parts.executor.takeCounts(),
                                          /*first=*/k == 0, self.callCounts));
    parts.job.memory.seconds(parts.rank, k) = now() - start - io.writeSeconds;
    if (parts.rank == 0)
      parts.job.memory.step(k) = io.record;
    if (!std::isfinite(io.record.values[StepRecord::Loss]) ||
        !std::isfinite(io.record.values[StepRecord::GradNorm]))
      control.stoppedAt.store(k + 1);
    self.runsDone.fetch_add(1);
    self.command[0] = RankControl::kBetweenRuns;
    stopped = control.stoppedAt.load();
    int64_t finished = io.finishedSteps + 1;
    if (parts.checkpoints && !(stopped && stopped <= k + 1) &&
        parts.job.checkpoints->isDue(finished, k + 1 == parts.job.repeats))
      ACCEL_RT_RETURN_IF_ERROR(parts.checkpoints->save(finished));
  }
  return Status();
}

} // namespace accel::rt
