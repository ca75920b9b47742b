// Declarations of the passes that cut a step into tasks, generated from
// Passes.td.

#ifndef ACCEL_LIB_TASKS_PASSES_H
#define ACCEL_LIB_TASKS_PASSES_H

#include "dialects/Dist/Dist.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel::tasks {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Tasks/Passes.h.inc"
} // namespace accel::tasks

#endif // ACCEL_LIB_TASKS_PASSES_H
