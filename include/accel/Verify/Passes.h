// Declarations of the passes that hold a local program against the logical one,
// generated from Passes.td.

#ifndef ACCEL_VERIFY_PASSES_H
#define ACCEL_VERIFY_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel::verify {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "accel/Verify/Passes.h.inc"

/// A program of an earlier phase, between the pass that keeps it and the one
/// that compares.
struct KeptProgram;
std::shared_ptr<KeptProgram> makeKeptProgram();

/// Before the module is changed: copies it, unless an earlier phase has.
std::unique_ptr<mlir::Pass>
createKeepProgramPass(std::shared_ptr<KeptProgram> program);

/// After it: `dist-verify-equivalence` against the copy.
std::unique_ptr<mlir::Pass>
createVerifyEquivalencePass(std::shared_ptr<KeptProgram> program);

/// After lowering: `plan-verify-equivalence` against the copy.
std::unique_ptr<mlir::Pass>
createVerifyPlanEquivalencePass(std::shared_ptr<KeptProgram> program);

} // namespace accel::verify

#endif // ACCEL_VERIFY_PASSES_H
