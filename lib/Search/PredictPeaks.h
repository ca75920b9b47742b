// What each stage will have in memory, found by a trial: a copy of the decided
// program is split and planned as the program itself will be.

#ifndef ACCEL_LIB_SEARCH_PREDICTPEAKS_H
#define ACCEL_LIB_SEARCH_PREDICTPEAKS_H

#include "ScheduleChoice.h"
#include "lib/Cost/Prediction.h"

namespace accel::search {

/// Adds the passes that make a plan of a split program, up to the places of
/// its buffers.
using PlanBuilder = std::function<void(mlir::OpPassManager &)>;

/// The bytes of each arena of each stage, of a module in phase `dist` whose
/// decisions are made; the module is not changed. None of a program that cannot
/// be planned: whoever plans it says why.
std::vector<cost::PredictedArena> predictPeaks(mlir::ModuleOp module,
                                               const SplitBuilder &buildSplit,
                                               const PlanBuilder &buildPlan);

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_PREDICTPEAKS_H
