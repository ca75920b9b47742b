// The passes of phase `train`: from a forward program to a training step.

#ifndef ACCEL_LIB_AUTODIFF_PASSES_H
#define ACCEL_LIB_AUTODIFF_PASSES_H

#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include <optional>

namespace accel::autodiff {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Autodiff/Passes.h.inc"

/// What phase `train` needs to know, its passes' own options among it: flags
/// stay text down to the pass, so that they print and parse.
struct TrainOptions {
  bool enabled = false; ///< `--train`; else a forward program
  BuildStepPassOptions step;
  /// Its loss is that of `step`; no entries: all of them.
  AddInferencePassOptions inference;
  bool rowMask = false; ///< `--row-mask`: the step takes a mask of rows
  bool factors = false; ///< `comm_hook=power_sgd`
  FactorGradientsPassOptions factor;
  std::string mixedPrecision; ///< "", "bf16", "fp16" or "fp8"
  /// Add what stands before differentiation and after it: `nn-tag-products` and
  /// `train-quantize-products` (empty without fp8), and, last,
  /// `train-measure-rounding` (empty without `--metrics=precision`).
  std::function<void(mlir::OpPassManager &)> tagProducts, quantizeProducts,
      measureRounding;
  /// `--batch-norm`: whether norms of a model are trained by statistics of the
  /// batch; as it was exported, unless it is said.
  std::optional<bool> trainsBatchNorms;
  /// `--allow-folded`: parameters that the exporter folded are held constant.
  bool allowFolded = false;
};

/// Checks the flags and resolves the rule: everything that can be refused
/// without a model.
llvm::Error checkTrainOptions(const TrainOptions &options);

/// Adds the passes from `nn` to `train`: the step, if `options` ask for one,
/// and the verifier of the phase.
void buildTrainPipeline(mlir::OpPassManager &pm, const TrainOptions &options);

/// The name of the function that is a training step.
inline constexpr llvm::StringLiteral kStepName = "step";
/// What nn-build-step has the step report, in this order; the last where its
/// loss is scaled.
inline constexpr llvm::StringLiteral kStepReports[] = {
    "loss", "grad_norm", "lr", "verdict", "loss_scale"};
/// The states that count, i64 scalars: updates, by which biases are corrected
/// and rates follow schedules, and calls, by which data and random numbers go
/// on. A step that is skipped is a call and no update.
inline constexpr llvm::StringLiteral kUpdateCounterName = "counter/step",
                                     kCallCounterName = "counter/call";

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_PASSES_H
