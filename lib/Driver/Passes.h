// Declarations of the driver's passes, generated from Passes.td.

#ifndef ACCEL_LIB_DRIVER_PASSES_H
#define ACCEL_LIB_DRIVER_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel::driver {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Driver/Passes.h.inc"
} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_PASSES_H
