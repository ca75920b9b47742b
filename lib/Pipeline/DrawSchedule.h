// A step of a pipeline as it is predicted, to be looked at: a picture, and a
// trace whose rows are called as those of `acc-run --trace`, so that one can be
// laid beside the other.

#ifndef ACCEL_LIB_PIPELINE_DRAWSCHEDULE_H
#define ACCEL_LIB_PIPELINE_DRAWSCHEDULE_H

#include "Simulate.h"
#include "llvm/Support/raw_ostream.h"

namespace accel::pipeline {

/// What is drawn; the simulation is that of the schedule with these edges.
struct DrawnStep {
  llvm::StringRef title; ///< The schedule's name.
  const Schedule &schedule;
  llvm::ArrayRef<Edge> edges;
  const Simulation &simulation;
  llvm::StringRef unit = "s"; ///< Of the costs' seconds.
};

/// An SVG on its own ground, light or dark as the reader's page: a row for each
/// rank from the step's beginning to its end, a box for each task as wide as it
/// takes, with its micro-batch where that has room, thin lines for transfers
/// between rows, and figures. Of several chunks of a rank the later ones are
/// paler. A pointer over a box shows which task it is, and when.
void writeScheduleSvg(llvm::raw_ostream &out, const DrawnStep &step);

/// JSON for Perfetto and chrome://tracing: a process for each rank, in which
/// `compute` has the tasks and `comm` what is sent and received; of what goes
/// on at the same time the rest is in `comm 2` and so on. The unit is seconds.
void writeScheduleTrace(llvm::raw_ostream &out, const DrawnStep &step);

} // namespace accel::pipeline

#endif // ACCEL_LIB_PIPELINE_DRAWSCHEDULE_H
