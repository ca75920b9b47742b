// The loop over steps. Before each of them ranks agree on whether there is
// another.

#include "Run/Train.h"

#include "Base/Now.h"
#include "Execute/Executor.h"
#include "Run/Evaluate.h"
#include "State/SavedWeights.h"

#include "State/CheckpointWriter.h"
#include "State/Resume.h"
#include <algorithm>
#include <chrono>
#include <cstring>

namespace accel::rt {
namespace {

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
        !state.shape.empty() || state.name != kCallCounter)
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

namespace {

/// What is told of a step on rank 0 is known to all: what follows from it all
/// of them do. Requires nothing of `value` on the other ranks.
Status shareValue(const RankParts &parts, double &value) {
  int64_t bits = INT64_MIN; // the least, also of what rank 0 may have
  if (parts.rank == 0)
    std::memcpy(&bits, &value, sizeof bits);
  ACCEL_RT_RETURN_IF_ERROR(parts.control.agree(bits));
  std::memcpy(&value, &bits, sizeof value);
  return Status();
}

/// One rank's steps.
class Steps {
public:
  explicit Steps(const RankParts &parts)
      : parts(parts), options(parts.job.options), self(parts.control.self()) {
    if (const Resume *resumed = parts.job.resumed;
        resumed && resumed->manifest().evaluations)
      best = *resumed->manifest().evaluations;
  }

  Status run() {
    tellBest();
    saved = self.firstStep;
    for (int64_t k = 0; k < parts.job.repeats && !isOver; ++k)
      ACCEL_RT_RETURN_IF_ERROR(runStep(k));
    return parts.checkpoints ? parts.checkpoints->finish() : Status();
  }

private:
  Status runStep(int64_t k);
  Status follow(int64_t k, int64_t finished, StepRecord &record);
  /// `isLast`: nothing goes on meanwhile that could be told of.
  Status save(int64_t finished, bool isLast) {
    saved = finished;
    ACCEL_RT_RETURN_IF_ERROR(parts.checkpoints->save(finished, best));
    return isLast ? parts.checkpoints->finish() : Status();
  }
  /// The newest checkpoint that is on storage, if it has not been told of.
  int64_t takeNewest() {
    int64_t newest = parts.checkpoints ? parts.checkpoints->newest() : 0;
    return newest == toldNewest ? 0 : (toldNewest = newest);
  }
  void tellBest() {
    self.bestStep = best.step;
    self.bestValue = best.value;
  }
  /// Whether what becomes of a step depends on its evaluation.
  bool watches() const {
    return !options.keepBest.empty() || options.earlyStoppingPatience;
  }

  const RankParts &parts;
  const RunOptions &options;
  RankControl &self;
  BestEvaluation best;
  int64_t saved = 0;      ///< The step of the newest checkpoint.
  int64_t toldNewest = 0; ///< Of those that are on storage.
  bool isOver = false, hasEvaluated = false;
};

Status Steps::runStep(int64_t k) {
  InputOutput &io = parts.io;
  io.writing = k + 1 == parts.job.repeats;
  io.writeSeconds = 0;
  io.finishedSteps = self.firstStep + k;
  // Whoever saw a step fail ends them for all; of an interrupt one rank
  // is told, in time or a step late. What is no longer in the data is not
  // trained on, and what was learned from it before is saved.
  enum Going : int64_t { GoOn, Interrupted, Failed };
  const DataFeed &feed = parts.job.call.data;
  Status data = feed.check();
  if (!data.ok() && !parts.checkpoints)
    return data;
  bool endsEarly =
      !data.ok() || (parts.rank == 0 && parts.control.isStopWanted());
  int64_t going = self.stoppedAt.load() ? Failed
                  : endsEarly           ? Interrupted
                                        : GoOn;
  ACCEL_RT_RETURN_IF_ERROR(parts.control.agree(going));
  isOver = going != GoOn;
  if (going == Interrupted) {
    if (!data.ok())
      std::strncpy(self.message, data.message().c_str(),
                   sizeof self.message - 1);
    self.interruptedAt = k;
    return saved == io.finishedSteps ? Status()
                                     : save(io.finishedSteps, /*isLast=*/true);
  }
  if (isOver)
    return Status();
  if (parts.checkpoints)
    ACCEL_RT_RETURN_IF_ERROR(parts.checkpoints->look());
  double start = now();
  if (Status status = parts.executor.run("step"); !status.ok())
    return Status::error(status.message() +
                         feed.whereRefused(io.finishedSteps, status.message()));
  ACCEL_RT_RETURN_IF_ERROR(parts.noteCall("step", /*first=*/k == 0));
  double seconds = now() - start - io.writeSeconds;
  ACCEL_RT_RETURN_IF_ERROR(io.metrics->write(io.finishedSteps + 1));
  StepRecord record = io.record;
  record.time = timeOfDay();
  self.command[0] = RankControl::kBetweenRuns;
  ACCEL_RT_RETURN_IF_ERROR(follow(k, io.finishedSteps + 1, record));
  record.savedStep = takeNewest();
  parts.control.report(k, seconds, record);
  self.runsDone.fetch_add(1);
  return Status();
}

/// What is due after a step: evaluations and checkpoints.
Status Steps::follow(int64_t k, int64_t finished, StepRecord &record) {
  bool isLast = k + 1 == parts.job.repeats;
  bool evaluates = parts.job.eval && finished % options.evalEvery == 0;
  bool saves =
      parts.checkpoints && parts.job.checkpoints->isDue(finished, isLast);
  int64_t hasFailed = parts.io.verdict() == Verdict::Failed;
  // What follows is done by all ranks or by none, whoever has the verdict.
  if (evaluates || saves)
    ACCEL_RT_RETURN_IF_ERROR(parts.control.agree(hasFailed));
  if (hasFailed)
    self.stoppedAt = k + 1;
  if (hasFailed || (!evaluates && !saves))
    return Status();
  // An evaluation may fail, and must not take along what is due: it comes
  // second, unless the checkpoint tells of it; and what is told of the step
  // last.
  bool savesFirst = saves && !(evaluates && watches());
  if (savesFirst)
    ACCEL_RT_RETURN_IF_ERROR(save(finished, isLast));
  // One that works once does so again: then a checkpoint is written meanwhile.
  if (evaluates && parts.checkpoints && !hasEvaluated)
    ACCEL_RT_RETURN_IF_ERROR(parts.checkpoints->finish());
  hasEvaluated |= evaluates;
  if (evaluates)
    ACCEL_RT_RETURN_IF_ERROR(
        evaluate(parts, *parts.job.eval, parts.evalIo, record));
  // Whoever ends the run early did not see the last one through.
  if (isLast && evaluates && !record.isEvaluated)
    self.interruptedAt = k + 1;
  if (record.isEvaluated && watches()) {
    double value = record.evalLoss;
    ACCEL_RT_RETURN_IF_ERROR(shareValue(parts, value));
    bool isBest = best.add(finished, value, options.earlyStoppingThreshold);
    tellBest();
    if (int64_t patience = options.earlyStoppingPatience;
        patience && best.withoutGain >= patience && !isLast) {
      isOver = true;
      self.stoppedEarlyAt = k + 1;
    }
    saves |=
        parts.checkpoints && (isOver || (isBest && !options.keepBest.empty()));
  }
  return saves && !savesFirst ? save(finished, isLast || isOver) : Status();
}

} // namespace

Status trainSteps(const RankParts &parts) { return Steps(parts).run(); }

} // namespace accel::rt
