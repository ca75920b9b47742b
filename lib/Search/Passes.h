// Declarations of the decide phase's passes, generated from Passes.td.

#ifndef ACCEL_LIB_SEARCH_PASSES_H
#define ACCEL_LIB_SEARCH_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <functional>

namespace accel::search {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Search/Passes.h.inc"

using PassBuilder = std::function<void(mlir::OpPassManager &)>;

/// The passes that a program will go through, of which nothing is verified: for
/// who tries a copy where a choice hangs on it.
struct Trier {
  PassBuilder buildSplit; ///< to one rank's program
  PassBuilder buildTasks; ///< to the tasks of the stages
  /// To plans whose buffers have their places, of the stages that are named;
  /// of all, if none is.
  std::function<void(mlir::OpPassManager &, llvm::ArrayRef<int64_t> stages)>
      buildPlan;
};

std::unique_ptr<mlir::Pass> createDecidePass(const DecidePassOptions &options,
                                             PassBuilder buildSplit);
std::unique_ptr<mlir::Pass>
createFitMemoryPass(const FitMemoryPassOptions &options, Trier trier);
std::unique_ptr<mlir::Pass>
createTraceFrontierPass(const TraceFrontierPassOptions &options, Trier trier);
std::unique_ptr<mlir::Pass> createPredictMemoryPass(Trier trier);
} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_PASSES_H
