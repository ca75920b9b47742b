// Declarations of the CPU target's passes, generated from Passes.td.

#ifndef ACCEL_TARGET_CPU_PASSES_H
#define ACCEL_TARGET_CPU_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel::cpu {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "accel/Target/CPU/Passes.h.inc"
} // namespace accel::cpu

#endif // ACCEL_TARGET_CPU_PASSES_H
