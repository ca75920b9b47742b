// Declarations of the decide phase's passes, generated from Passes.td.

#ifndef ACCEL_LIB_SEARCH_PASSES_H
#define ACCEL_LIB_SEARCH_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel::search {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Search/Passes.h.inc"
} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_PASSES_H
