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

/// `search-decide` with the passes that split the program: on a copy, what its
/// tasks take is measured where a choice hangs on it. With those that plan what
/// is split, memory is predicted where somebody asks (lib/Cost/Prediction.h).
std::unique_ptr<mlir::Pass>
createDecidePass(const DecidePassOptions &options,
                 std::function<void(mlir::OpPassManager &)> buildSplit,
                 std::function<void(mlir::OpPassManager &)> buildPlan = {});
} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_PASSES_H
