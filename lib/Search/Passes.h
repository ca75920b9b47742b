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

/// The passes with those that split the program, and that plan what is split:
/// they try a copy where a choice hangs on it.
std::unique_ptr<mlir::Pass> createDecidePass(const DecidePassOptions &options,
                                             PassBuilder buildSplit);
std::unique_ptr<mlir::Pass>
createFitMemoryPass(const FitMemoryPassOptions &options, PassBuilder buildSplit,
                    PassBuilder buildPlan);
std::unique_ptr<mlir::Pass> createTraceFrontierPass(PassBuilder buildSplit,
                                                    PassBuilder buildPlan);
std::unique_ptr<mlir::Pass> createPredictMemoryPass(PassBuilder buildSplit,
                                                    PassBuilder buildPlan);
} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_PASSES_H
