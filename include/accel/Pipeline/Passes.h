// Declarations of the passes that cut a step into tasks, generated from
// Passes.td.

#ifndef ACCEL_PIPELINE_PASSES_H
#define ACCEL_PIPELINE_PASSES_H

#include "dialects/Dist/Dist.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel::pipeline {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "accel/Pipeline/Passes.h.inc"
} // namespace accel::pipeline

#endif // ACCEL_PIPELINE_PASSES_H
