// Declarations of the passes that cut a model into the chunks of a pipeline,
// generated from Passes.td.

#ifndef ACCEL_LIB_STAGES_PASSES_H
#define ACCEL_LIB_STAGES_PASSES_H

#include "dialects/NN/NN.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel::stages {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Stages/Passes.h.inc"
} // namespace accel::stages

#endif // ACCEL_LIB_STAGES_PASSES_H
