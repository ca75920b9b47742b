// From the kernels of a plan to a shared library of functions that the runtime
// calls (runtime/Device/CPU/Kernel.h).

#ifndef ACCEL_LIB_TARGET_CPU_KERNELS_H
#define ACCEL_LIB_TARGET_CPU_KERNELS_H

#include "CpuTarget.h"
#include "dialects/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel::cpu {

/// A kernel function for given strides of its arguments, which are compiled in.
struct KernelInstance {
  mlir::func::FuncOp function;
  /// Of the inputs, then of the outputs; in elements.
  llvm::SmallVector<llvm::SmallVector<int64_t>> strides;
  /// For each input the output that is the same memory (in place), or -1.
  llvm::SmallVector<int> inPlace;
  /// The exported name.
  std::string symbol;
};

/// The instance that a command runs; without a function if there is none of its
/// name.
KernelInstance getInstance(plan::KernelOp kernel,
                           mlir::SymbolTableCollection &symbols);

/// The exported name of the function that a command runs: its kernel's name,
/// with a hash of the strides where they are not those of whole tensors.
std::string getKernelSymbol(plan::KernelOp kernel,
                            mlir::SymbolTableCollection &symbols);
/// The same of an attention's softmax.
std::string getKernelSymbol(plan::AttentionOp attention);
/// The same of the softmax and its gradient.
std::string getKernelSymbol(plan::AttentionGradOp grad);

/// Checks that code can be generated for a kernel: every op implements
/// ElementSource, constants are splats, results are cut into `plan.rows` rows.
llvm::LogicalResult verifyKernel(mlir::func::FuncOp kernel);

/// Whether a command stands in a body that the CPU executes.
bool isOfCpu(mlir::Operation *command);

/// Compiles every kernel that the CPU's commands of `plan` name, and the
/// softmax of each attention and attention gradient, into one shared library;
/// returns its bytes. Kernels that are the same function are compiled once. The
/// library is taken from the cache ($ACCEL_CACHE, else $XDG_CACHE_HOME/acc,
/// else
/// ~/.cache/acc) if the same code was compiled for the same target before and
/// what was kept is as it was; a warning says where it is not. Errors are
/// located at the op that cannot be compiled.
llvm::FailureOr<std::string> compileKernels(mlir::ModuleOp plan,
                                            const CpuTarget &target);

/// The same of instances and of attentions (or gradients) of one module; for
/// tests.
llvm::FailureOr<std::string>
compileInstances(llvm::ArrayRef<KernelInstance> instances,
                 llvm::ArrayRef<mlir::Operation *> attentions,
                 const CpuTarget &target, mlir::Location loc);

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_KERNELS_H
