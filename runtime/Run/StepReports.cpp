// Gathering a step's report from what the ranks told.

#include "Run/StepReports.h"

#include <algorithm>
#include <cmath>

namespace accel::rt {

StepResult stepResult(const Job &job, int64_t number) {
  const Executable &plan = job.file.plan();
  const StepRecord record = job.control.record(number);
  StepResult result;
  result.step = job.control.firstStep() + number + 1;
  result.last = number + 1 == job.repeats;
  result.loss = record.values[StepRecord::Loss];
  result.gradNorm = record.values[StepRecord::GradNorm];
  result.learningRate = record.values[StepRecord::LearningRate];
  if (record.isEvaluated)
    result.evalLoss = record.evalLoss;
  result.evalSeconds = record.evalSeconds;
  result.time = record.time;
  if (job.call.hasData)
    result.epoch = job.call.data.epochsAfter(result.step);
  DType *types[] = {&result.lossType, &result.gradNormType,
                    &result.learningRateType};
  for (const TensorPlan &output : plan.outputs)
    for (size_t i = 0; i < std::size(types); ++i)
      if (output.name == kStepReports[i])
        *types[i] = output.dtype;
  result.evalLossType = result.lossType; // one output, of both entries
  for (int64_t rank = 0; rank < plan.numRanks(); ++rank)
    result.seconds =
        std::max(result.seconds, job.control.seconds(rank, number));
  for (const TensorPlan &input : job.call.tensors.inputs) {
    const std::vector<int64_t> &shape = input.shape;
    if (!shape.empty() && !result.samples)
      result.samples = shape[0];
    if (shape.size() == 2 && !result.tokens &&
        (input.dtype == DType::I64 || input.dtype == DType::I32)) {
      result.samples = shape[0];
      result.tokens = shape[0] * shape[1];
    }
  }
  return result;
}

Status badStep(const Job &job) {
  int64_t stopped = job.control.stoppedAt();
  StepResult bad = stepResult(job, stopped - 1);
  bool isLoss = !std::isfinite(bad.loss);
  double value = isLoss ? bad.loss : bad.gradNorm;
  return Status::error(
      "step " + std::to_string(bad.step) + ": the " +
      (isLoss ? "loss" : "norm of the gradients") + " is not finite (" +
      (std::isnan(value) ? "nan"
       : value > 0       ? "inf"
                         : "-inf") +
      "); the state is that of step " + std::to_string(bad.step - 1));
}

} // namespace accel::rt
