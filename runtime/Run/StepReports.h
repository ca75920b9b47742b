// What the parent says of training steps and of the run: their results, and the
// error of a run that one of them ended.

#ifndef ACCEL_RUNTIME_RUN_STEPREPORTS_H
#define ACCEL_RUNTIME_RUN_STEPREPORTS_H

#include "Run/Rank.h"

namespace accel::rt {

/// What the ranks say of the step `number`, counted from 0 in this run.
/// Requires all of them to have finished it.
StepResult stepResult(const Job &job, int64_t number);

/// What the ranks measured, and how training ended. Requires a run that ended
/// well.
void collectResult(const Job &job, RunResult &result);

/// The samples of a step that reads `inputs`, and their tokens.
void countSamples(const std::vector<TensorPlan> &inputs, StepResult &result);

/// The reports of a step, given the values of all; its verdict.
void fillReports(const Executable &plan, const double *values,
                 StepResult &result);

/// The error of a step that failed: which of its reports is not finite, if one
/// is.
Status failedStep(const StepResult &step);

/// The error of a run that stopped at such a step. Requires
/// RankControl::stoppedAt.
Status failedStep(const Job &job);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_STEPREPORTS_H
