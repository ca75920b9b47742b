// What a plan will have in memory, before it is made: of each stage and arena
// the bytes that a rank is predicted to need. Who predicts writes it into the
// module, if somebody asks; who prints the plan's own holds them side by side.

#ifndef ACCEL_LIB_COST_PREDICTION_H
#define ACCEL_LIB_COST_PREDICTION_H

#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace accel::cost {

/// Of the ranks of one stage.
struct PredictedArena {
  int64_t stage;
  std::string space; ///< "device", as arenas of a plan have it
  int64_t bytes;     ///< of a rank, with alignment and gaps
};

/// The key of `accel.decisions` under which arenas are told: a list, empty at
/// first, which asks for them.
inline constexpr llvm::StringLiteral kPredictedKey = "predicted";

/// Asks `search-decide` to predict.
void askForPrediction(mlir::ModuleOp module);
/// Whether somebody asks: a prediction takes a trial (PredictPeaks.h).
bool isAskedForPrediction(mlir::ModuleOp module);

/// Tells the arenas, in the place of those told before, as
///
///     [{stage = 0 : i64, space = "device", bytes = 4096 : i64}]
void tellPrediction(mlir::ModuleOp module,
                    llvm::ArrayRef<PredictedArena> arenas);

/// Those that were told; none of a module that was not asked. Errors, at the
/// module: one that is not of that form.
mlir::FailureOr<std::vector<PredictedArena>>
readPrediction(mlir::ModuleOp module);

/// By how much a prediction differs from what is planned, in percent of that:
/// positive where it is more.
double getDifferencePercent(int64_t predicted, int64_t planned);

} // namespace accel::cost

#endif // ACCEL_LIB_COST_PREDICTION_H
