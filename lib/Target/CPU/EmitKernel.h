// Writing kernels as functions of scalar loops.

#ifndef ACCEL_LIB_TARGET_CPU_EMITKERNEL_H
#define ACCEL_LIB_TARGET_CPU_EMITKERNEL_H

#include "Kernels.h"
#include "RowEmitter.h"

namespace accel::cpu {

/// What tells one attention's row kernel from another's.
struct SoftmaxDesc {
  mlir::Type type; ///< of the probabilities
  mlir::Type mask; ///< of the mask's elements; null without mask
  int64_t maskQuery = 0, maskKey = 0; ///< the mask's strides in elements
  bool levels = false; ///< Whether the mask's first column is its rows' levels.
  double scale = 1;
  bool causal = false, zeroMaskedRows = false;
  bool gradient = false; ///< Of plan.attention_grad: the scores' gradient too.
  /// Whether the log-sum-exp is written; of a gradient, whether it has one.
  bool logSumExp = false;
  int64_t width = 0; ///< of the result's rows; of a gradient only
  std::string symbol;
};
/// Requires a plan.attention or plan.attention_grad.
SoftmaxDesc getSoftmax(mlir::Operation *attention);
/// What the symbols of attention's kernels begin with.
inline constexpr llvm::StringLiteral kSoftmaxPrefix = "softmax_";

/// An empty module for the code of kernels, whose dialects are loaded.
mlir::OwningOpRef<mlir::ModuleOp> makeKernelModule(mlir::MLIRContext &context);

/// Adds to `module` (of a context of its own) the exported function of an
/// instance, and the function with its arguments spelled out that it calls.
/// Returns how much of its scratch it has found use for.
int64_t emitKernel(mlir::ModuleOp module, const KernelInstance &instance);
void emitSoftmax(mlir::ModuleOp module, const SoftmaxDesc &desc);

/// Adds the pair of functions and lets `emit` fill the second one, which gets
/// the addresses, the first row and the end of the rows. With `refuses` one
/// more address is taken, where refused data are described.
void emitFunction(mlir::ModuleOp module, llvm::StringRef symbol,
                  unsigned arguments, bool refuses,
                  llvm::function_ref<void(RowEmitter &, mlir::ValueRange,
                                          mlir::Value, mlir::Value)>
                      emit);

/// Suffix of the function that an exported one calls.
inline constexpr llvm::StringLiteral kBodySuffix = ".body";

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_EMITKERNEL_H
