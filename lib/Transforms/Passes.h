// The passes of phase 1 that work on nn: recognition of what exporters took
// apart, and the phase's verifier.
#ifndef ACCEL_LIB_TRANSFORMS_PASSES_H
#define ACCEL_LIB_TRANSFORMS_PASSES_H

#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel::transforms {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Passes.h.inc"

/// Adds the passes between the importer and the end of phase `nn` to a pass
/// manager of modules: simplification, recognition, and the verifier.
void buildImportPipeline(mlir::OpPassManager &pm);

} // namespace accel::transforms

#endif // ACCEL_LIB_TRANSFORMS_PASSES_H
