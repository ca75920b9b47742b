// Gathering what the ranks told.

#include "Run/StepReports.h"

#include "Run/CheckOptions.h"
#include "State/BestEvaluation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

namespace accel::rt {
namespace {

/// What each entry of a rank that was called comes to.
std::map<std::string, EntryCounts> countsOf(const Job &job, int64_t rank) {
  std::map<std::string, EntryCounts> counts;
  const Program &program = *programOf(job.file.plan(), rank);
  for (size_t i = 0; i < program.entries.size(); ++i)
    if (EntryCounts found = nameCounts(job.control.counts(rank, i));
        !found.empty() || program.entries[i].name == "load")
      counts[program.entries[i].name] = std::move(found);
  return counts;
}

} // namespace

void collectResult(const Job &job, RunResult &result) {
  const Executable &plan = job.file.plan();
  result.device = job.device.name;
  result.bestStep = job.control.rank(0).bestStep;
  result.bestValue = job.control.rank(0).bestValue;
  result.ranks = plan.numRanks();
  int64_t calls =
      job.control.stoppedEarlyAt() ? job.control.stoppedEarlyAt() : job.repeats;
  result.seconds.assign(static_cast<size_t>(calls), 0);
  for (int64_t rank = 0; rank < result.ranks; ++rank) {
    const RankControl &self = job.control.rank(rank);
    uint64_t planned = 0;
    for (const ArenaPlan &arena : programOf(plan, rank)->arenas)
      if (arena.isStored())
        result.storageBytes =
            std::max(result.storageBytes, static_cast<uint64_t>(arena.bytes));
      else
        planned += static_cast<uint64_t>(arena.bytes);
    result.storageRead = std::max(result.storageRead, self.storageRead.load());
    result.storageWritten =
        std::max(result.storageWritten, self.storageWritten.load());
    result.threads = self.threads;
    result.plannedPeakBytes = std::max(result.plannedPeakBytes, planned);
    result.measuredPeakBytes =
        std::max(result.measuredPeakBytes, self.arenaBytes);
    result.touchedPeakBytes =
        std::max(result.touchedPeakBytes, self.touchedBytes);
    result.residentBytes = std::max(result.residentBytes, self.residentBytes);
    result.reservedBytes = std::max(result.reservedBytes, self.reservedBytes);
    if (!job.device.executes)
      result.counts.push_back(countsOf(job, rank));
    else if (self.residentBytes > planned + self.reservedBytes)
      std::fprintf(stderr,
                   "acc-run: warning: rank %lld holds %.1f MiB beside its "
                   "arenas, more than the %.1f MiB reserved in the plan\n",
                   static_cast<long long>(rank),
                   double(self.residentBytes - planned) / (1 << 20),
                   double(self.reservedBytes) / (1 << 20));
    result.loadSeconds = std::max(result.loadSeconds, self.loadSeconds);
    for (int64_t repeat = 0; repeat < calls; ++repeat)
      result.seconds[repeat] =
          std::max(result.seconds[repeat], job.control.seconds(rank, repeat));
  }
  result.skippedSteps = 0;
  if (job.trains() && job.device.executes)
    for (int64_t step = 0; step < calls; ++step)
      result.skippedSteps += stepResult(job, step).verdict == Verdict::Skipped;
  if (int64_t at = job.control.stoppedEarlyAt()) {
    BestEvaluation best;
    best.step = result.bestStep;
    best.value = result.bestValue;
    best.withoutGain = job.options.earlyStoppingPatience;
    int64_t before = job.control.firstStep();
    result.stoppedEarly = "training ended after step " +
                          std::to_string(before + at) + " of " +
                          std::to_string(before + job.repeats) + ": " +
                          whyStopped(best, job.options);
  }
}

StepResult stepResult(const Job &job, int64_t number) {
  const Executable &plan = job.file.plan();
  const StepRecord record = job.control.record(number);
  StepResult result;
  result.step = job.control.firstStep() + number + 1;
  result.last =
      number + 1 == job.repeats || number + 1 == job.control.stoppedEarlyAt();
  fillReports(plan, record.values, result);
  if (record.isEvaluated)
    result.evalLoss = record.evalLoss;
  result.evalSeconds = record.evalSeconds;
  result.time = record.time;
  result.savedStep = record.savedStep;
  if (job.call.hasData)
    result.epoch = job.call.data.epochsAfter(result.step);
  if (const Report *loss = result.find(kLossReport))
    result.evalLossType = loss->dtype; // one output, of both entries
  for (int64_t rank = 0; rank < plan.numRanks(); ++rank)
    result.seconds =
        std::max(result.seconds, job.control.seconds(rank, number));
  countSamples(job.call.tensors.inputs, result);
  if (!job.call.hasData || !result.samples)
    return result;
  // A last batch may have fewer rows that count.
  auto rows = static_cast<int64_t>(job.call.data.sampleOrder().numRows(
      static_cast<uint64_t>(result.step - 1)));
  if (rows < job.call.data.batchSize()) {
    result.tokens = result.tokens / result.samples * rows;
    result.samples = rows;
  }
  return result;
}

void countSamples(const std::vector<TensorPlan> &inputs, StepResult &result) {
  for (const TensorPlan &input : inputs) {
    const std::vector<int64_t> &shape = input.shape;
    if (!shape.empty() && !result.samples)
      result.samples = shape[0];
    if (shape.size() == 2 && !result.tokens &&
        (input.dtype == DType::I64 || input.dtype == DType::I32)) {
      result.samples = shape[0];
      result.tokens = shape[0] * shape[1];
    }
  }
}

void fillReports(const Executable &plan, const double *values,
                 StepResult &result) {
  for (const ReportPlan &report : plan.reports) {
    double value = *values++;
    if (report.name == kVerdictReport)
      result.verdict = verdictOf(value);
    else
      result.reports.push_back({report.name, report.dtype, value});
  }
}

Status failedStep(const Job &job) {
  StepResult failed = stepResult(job, job.control.stoppedAt() - 1);
  return Status::error(failedStep(failed).message() +
                       job.call.data.whatIsNotFinite(failed.step - 1));
}

Status failedStep(const StepResult &failed) {
  std::string why = "it has failed, by the program's own rule";
  for (const Report &report : failed.reports)
    if (!std::isfinite(report.value)) {
      std::string name = report.name;
      std::replace(name.begin(), name.end(), '_', ' ');
      why = "the " + name + " is not finite (" +
            (std::isnan(report.value) ? "nan"
             : report.value > 0       ? "inf"
                                      : "-inf") +
            ")";
      break;
    }
  // Where the loss is scaled this tells a scaler that gives up.
  for (const Report &report : failed.reports)
    if (report.name == kLossScaleReport) {
      std::ostringstream scale;
      scale << report.value;
      why += ", with a loss scale of " + scale.str();
    }
  return Status::error("step " + std::to_string(failed.step) + ": " + why +
                       "; the state is that of step " +
                       std::to_string(failed.step - 1));
}

} // namespace accel::rt
