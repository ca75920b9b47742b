// Declarations of the passes from `local` to `plan`, generated from Passes.td.

#ifndef ACCEL_LIB_PLAN_PASSES_H
#define ACCEL_LIB_PLAN_PASSES_H

#include "dialects/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel::plan {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Plan/Passes.h.inc"
} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_PASSES_H
