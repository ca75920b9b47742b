// The order of a step's tasks as it stands in a program, played with what they
// take.

#ifndef ACCEL_LIB_REPORT_PLAYSCHEDULE_H
#define ACCEL_LIB_REPORT_PLAYSCHEDULE_H

#include "PipelineFigures.h"
#include "lib/Pipeline/Synthesise.h"

namespace accel::report {

struct PlayedSchedule {
  pipeline::Problem problem;
  /// With a backward, that takes nothing, where the program has none.
  pipeline::Synthesis step;
  /// Of each stage the forwards that have begun and not ended at most, of
  /// chunks that have a backward.
  std::vector<int64_t> keptChunks;
};

/// Whether the program has such a task.
bool isThere(const PipelineFigures &figures, const pipeline::Task &task);

/// In so much work a second. Errors, at the schedule: a chunk does not go
/// through each micro-batch once, forward and backward; the step does not end.
mlir::FailureOr<PlayedSchedule> playSchedule(const PipelineFigures &figures,
                                             double unit);

} // namespace accel::report

#endif // ACCEL_LIB_REPORT_PLAYSCHEDULE_H
