// Which schedule a step is run by, weighed on what its tasks take.

#ifndef ACCEL_LIB_SEARCH_SCHEDULECHOICE_H
#define ACCEL_LIB_SEARCH_SCHEDULECHOICE_H

#include "Passes.h"
#include "lib/Pipeline/Synthesise.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include <optional>

namespace accel::search {

struct ScheduleChoice {
  std::string name; ///< as it was asked for, then as it is
  int64_t stages, microBatches;
  std::optional<pipeline::Schedule> order; ///< of one without a name
};

/// What the tasks of a decided module's step take once it is split; a copy is.
/// Errors: the split's.
mlir::FailureOr<pipeline::Problem> measureTasks(mlir::ModuleOp module,
                                                const PassBuilder &buildSplit,
                                                int64_t stages,
                                                int64_t microBatches);

/// Of `auto` on several stages finds the fastest schedule of which no stage
/// keeps more micro-batches than there are stages (Synthesise.h), and says so
/// in a remark; what is asked for by name stays. Where the module was asked for
/// its decisions, tells the others and what each takes. For either a copy of
/// the module is split, and its tasks are measured (TaskCosts.h).
///
/// Errors: `auto` without `buildSplit`; the split's.
mlir::LogicalResult chooseSchedule(mlir::ModuleOp module,
                                   const PassBuilder &buildSplit,
                                   ScheduleChoice &choice);

/// Tells of the schedule in place of what was told of it, when it was decided
/// anew and for another reason.
void tellOfScheduleAgain(mlir::ModuleOp module,
                         const pipeline::Synthesis &chosen,
                         pipeline::Problem problem, llvm::StringRef reason);

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_SCHEDULECHOICE_H
