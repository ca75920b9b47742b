// Looks for the fastest schedule of a pipeline whose stages are not alike and
// whose memory is limited: `--schedule=auto`.

#ifndef ACCEL_LIB_PIPELINE_SYNTHESISE_H
#define ACCEL_LIB_PIPELINE_SYNTHESISE_H

#include "ListSchedule.h"
#include "NamedSchedules.h"
#include "Simulate.h"

namespace accel::pipeline {

/// A model that is cut into chunks, and the ranks to run it on.
struct Problem {
  int64_t ranks = 1;
  int64_t microBatches = 1;
  Edges edges;
  Costs costs; ///< Of as many chunks as there are; a multiple of the ranks.
  MemoryCap cap;
};

/// A schedule with all that is needed to run it, as verify proves it.
struct Synthesis {
  std::string name; ///< "zb-h1", "interleaved:2"; "auto" of one without a name.
  Schedule schedule;
  Slots slots{0};
  Posting posting;
  Simulation simulation;
};

/// Counts slots, posts transfers (with two slots of what is sent and received,
/// and more where those are too few to end) and simulates. Requires what
/// Execution does of a schedule.
Synthesis evaluate(std::string name, Schedule schedule, const Problem &problem);

/// Whether each rank's slots for activations keep to the cap. What transfers
/// need beside is the same few for any schedule, and not counted.
bool fits(const Synthesis &synthesis, const Problem &problem);

/// Those named schedules that are of as many chunks per rank, and fit, in the
/// order of the table.
std::vector<Synthesis> evaluateNamed(const Problem &problem);

/// The named schedules that fit and the fastest list schedules: of each
/// placement (ListSchedule.h), each policy, under the cap and under the slots
/// that each fitting named schedule gives to chunks. Of equals a named one, the
/// first of the table. The same problem gives the same schedule. Errors: chunks
/// that are no multiple of the ranks; a cap that one slot of each chunk
/// exceeds.
llvm::Expected<std::vector<Synthesis>> trySchedules(const Problem &problem);

/// The first of those of which none is faster. Requires one.
const Synthesis &findFastest(llvm::ArrayRef<Synthesis> tried);

/// The fastest of those that are tried.
llvm::Expected<Synthesis> synthesise(const Problem &problem);

} // namespace accel::pipeline

#endif // ACCEL_LIB_PIPELINE_SYNTHESISE_H
