// Declarations of the passes that hold a local program against the logical one,
// generated from Passes.td.

#ifndef ACCEL_LIB_EQUIVALENCE_PASSES_H
#define ACCEL_LIB_EQUIVALENCE_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"

namespace accel::equivalence {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Equivalence/Passes.h.inc"

/// A program of an earlier phase, between the pass that keeps it and the one
/// that compares.
struct KeptProgram;
std::shared_ptr<KeptProgram>
makeKeptProgram(mlir::OwningOpRef<mlir::ModuleOp> module = {});

/// Before the module is changed: copies it, unless an earlier phase has.
std::unique_ptr<mlir::Pass>
createKeepProgramPass(std::shared_ptr<KeptProgram> program);

/// After dimensions were padded: copies the module if one was.
std::unique_ptr<mlir::Pass>
createKeepPaddedPass(std::shared_ptr<KeptProgram> program);

/// After it: `dist-verify-equivalence` against the copy, by way of the padded
/// one if there is one.
std::unique_ptr<mlir::Pass>
createVerifyEquivalencePass(std::shared_ptr<KeptProgram> program,
                            std::shared_ptr<KeptProgram> padded = {});

/// After lowering: `plan-verify-equivalence` against the copy.
std::unique_ptr<mlir::Pass>
createVerifyPlanEquivalencePass(std::shared_ptr<KeptProgram> program);

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PASSES_H
