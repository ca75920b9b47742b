// The loop over steps. Before each of them ranks agree on whether there is
// another.

#include "Run/Train.h"

#include "Execute/Executor.h"
#include "Run/Evaluate.h"
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

/// Seconds since 1970.
double timeOfDay() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

} // namespace

Status RankParts::noteCall(const std::string &entry, bool first) const {
  for (size_t i = 0; i < program.entries.size(); ++i)
    if (program.entries[i].name == entry && !job.device.executes)
      return noteCounts(executor.takeCounts(), first, control.counts(i));
  return Status();
}

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
  RankControl &self = parts.control.self();
  InputOutput &io = parts.io;
  for (int64_t k = 0; k < parts.job.repeats; ++k) {
    io.writing = k + 1 == parts.job.repeats;
    io.writeSeconds = 0;
    io.finishedSteps = self.firstStep + k;
    // Whoever saw a step end badly ends them for all; of an interrupt one rank
    // is told, in time or a step late.
    enum Verdict : int64_t { GoOn, Interrupted, EndedBadly };
    int64_t verdict = self.stoppedAt.load() ? EndedBadly
                      : parts.rank == 0 && parts.control.isStopWanted()
                          ? Interrupted
                          : GoOn;
    ACCEL_RT_RETURN_IF_ERROR(parts.control.agree(verdict));
    if (verdict == EndedBadly)
      break;
    if (verdict == Interrupted) {
      self.interruptedAt = k;
      bool isSaved =
          k == 0 || parts.job.checkpoints->isDue(io.finishedSteps, false);
      if (!isSaved)
        ACCEL_RT_RETURN_IF_ERROR(parts.checkpoints->save(io.finishedSteps));
      break;
    }
    double start = now();
    ACCEL_RT_RETURN_IF_ERROR(parts.executor.run("step"));
    ACCEL_RT_RETURN_IF_ERROR(parts.noteCall("step", /*first=*/k == 0));
    double seconds = now() - start - io.writeSeconds;
    StepRecord record = io.record;
    record.time = timeOfDay();
    self.command[0] = RankControl::kBetweenRuns;
    int64_t finished = io.finishedSteps + 1;
    bool evaluates =
        parts.job.eval && finished % parts.job.options.evalEvery == 0;
    bool saves = parts.checkpoints && parts.job.checkpoints->isDue(
                                          finished, k + 1 == parts.job.repeats);
    int64_t isBad = !std::isfinite(io.record.values[StepRecord::Loss]) ||
                    !std::isfinite(io.record.values[StepRecord::GradNorm]);
    // What follows is done by all ranks or by none, whoever has the loss.
    if (evaluates || saves)
      ACCEL_RT_RETURN_IF_ERROR(parts.control.agree(isBad));
    if (isBad)
      self.stoppedAt = k + 1;
    // An evaluation may fail, and must not take along what is due: it comes
    // second, and what is told of the step last.
    if (saves && !isBad)
      ACCEL_RT_RETURN_IF_ERROR(parts.checkpoints->save(finished));
    if (evaluates && !isBad)
      ACCEL_RT_RETURN_IF_ERROR(
          evaluate(parts, *parts.job.eval, parts.evalIo, record));
    parts.control.report(k, seconds, record);
    self.runsDone.fetch_add(1);
    // Whoever ends the run early did not see the last one through.
    bool isLast = k + 1 == parts.job.repeats;
    if (isLast && evaluates && !isBad && !record.isEvaluated)
      self.interruptedAt = k + 1;
  }
  return Status();
}

} // namespace accel::rt
