// The loop over the batches of an evaluation.

#include "Run/Evaluate.h"

#include "Execute/Executor.h"

#include <chrono>

namespace accel::rt {

Status evaluate(const RankParts &parts, const Call &call, InputOutput &io,
                StepRecord &record) {
  using Clock = std::chrono::steady_clock;
  RankControl &self = parts.control.self();
  auto start = Clock::now();
  int64_t whole = call.numBatches(), rest = call.numRest(),
          batches = whole + (rest ? 2 : 0);
  // Weights are whole numbers, so that counts of labels stay such.
  double unit = rest ? static_cast<double>(call.data.batchSize()) : 1,
         copies = static_cast<double>(rest) - unit;
  ACCEL_RT_RETURN_IF_ERROR(call.data.check());
  io.losses.clear();
  io.writeSeconds = 0;
  for (int64_t batch = 0; batch < batches; ++batch) {
    io.finishedSteps = batch;
    int64_t ends = parts.rank == 0 && parts.control.isStopWanted();
    ACCEL_RT_RETURN_IF_ERROR(parts.control.agree(ends));
    if (ends)
      return Status();
    Status status = parts.executor.run("eval");
    if (!status.ok() && status.message() != kAbortedMessage)
      return Status::error("batch " + std::to_string(batch + 1) + " of " +
                           std::to_string(batches) +
                           " of the evaluation: " + status.message() +
                           call.data.whereRefused(batch, status.message()));
    ACCEL_RT_RETURN_IF_ERROR(status);
    io.losses.add(io.loss(), batch > whole ? copies : unit);
    self.command[0] = RankControl::kBetweenRuns;
  }
  std::chrono::duration<double> seconds = Clock::now() - start;
  record.isEvaluated = true;
  record.evalLoss = io.losses.value(unit);
  record.evalSeconds = seconds.count() - io.writeSeconds;
  return Status();
}

} // namespace accel::rt
