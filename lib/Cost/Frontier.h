// What a step would take with less memory: peaks, and the work that is done
// again for each. Who tries it writes it into the module, if somebody asks; who
// prints the memory of a plan tells it.

#ifndef ACCEL_LIB_COST_FRONTIER_H
#define ACCEL_LIB_COST_FRONTIER_H

#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace accel::cost {

/// A choice that no other one is better than in both.
struct FrontierPoint {
  int64_t bytes; ///< of a rank of the stage that has most
  /// What is done again, and what the step takes, as parts of the step's work
  /// and time where nothing is computed again.
  double moreWork, time;
  std::string what;    ///< "7 layers full, 5 layers none"
  std::string decided; ///< what a budget decides beside: "gathers once"
};

/// The key of `accel.decisions` under which points are told: a list, empty at
/// first, which asks for them.
inline constexpr llvm::StringLiteral kFrontierKey = "frontier";

/// Asks `search-trace-frontier` for points.
void askForFrontier(mlir::ModuleOp module);
bool isAskedForFrontier(mlir::ModuleOp module);

/// Tells the points, in the place of those told before, as
///
///     [{bytes = 4096 : i64, more_work = 0.25 : f64, time = 1.25 : f64,
///       what = "2 layers full", decided = ""}]
void tellFrontier(mlir::ModuleOp module, llvm::ArrayRef<FrontierPoint> points);

/// Those that were told; none of a module that was not asked. Errors, at the
/// module: one that is not of that form.
mlir::FailureOr<std::vector<FrontierPoint>> readFrontier(mlir::ModuleOp module);

} // namespace accel::cost

#endif // ACCEL_LIB_COST_FRONTIER_H
