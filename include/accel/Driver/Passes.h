// Declarations of the driver's passes, generated from Passes.td.

#ifndef ACCEL_DRIVER_PASSES_H
#define ACCEL_DRIVER_PASSES_H

#include "accel/Verify/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel::driver {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "accel/Driver/Passes.h.inc"

/// The same, for one phase of several that are run one by one: `logical` is
/// what they prove against.
std::unique_ptr<mlir::Pass>
createRunPhasesPass(RunPhasesPassOptions options,
                    std::shared_ptr<verify::KeptProgram> logical);
} // namespace accel::driver

#endif // ACCEL_DRIVER_PASSES_H
