// The passes of phase `train`: from a forward program to a training step.

#ifndef ACCEL_LIB_AUTODIFF_PASSES_H
#define ACCEL_LIB_AUTODIFF_PASSES_H

#include "TrainOptions.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace accel::autodiff {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Autodiff/Passes.h.inc"

/// Adds the passes from `nn` to `train`: the step, if `options` ask for one,
/// and the verifier of the phase.
void buildTrainPipeline(mlir::OpPassManager &pm, const TrainOptions &options);

/// The name of the function that is a training step.
inline constexpr llvm::StringLiteral kStepName = "step";
/// The state that counts finished steps, an i64 scalar.
inline constexpr llvm::StringLiteral kStepCounterName = "counter/step";

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_PASSES_H
