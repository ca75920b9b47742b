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
  std::string symbol = {};
  /// What each thread has beside its stack, as the command's form says.
  int64_t threadScratch = 0;
};

/// The instance that a command runs; without a function if there is none of its
/// name.
KernelInstance getInstance(plan::KernelOp kernel,
                           mlir::SymbolTableCollection &symbols);

/// The exported name of the function that a command runs: its kernel's name,
/// with a hash of the strides where they are not those of whole tensors, and of
/// the form where there is one.
std::string getKernelSymbol(plan::KernelOp kernel,
                            mlir::SymbolTableCollection &symbols);
/// The same of an attention's softmax.
std::string getKernelSymbol(plan::AttentionOp attention);
/// The same of the softmax and its gradient.
std::string getKernelSymbol(plan::AttentionGradOp grad);

/// Checks that code can be generated for a kernel: every op implements
/// ElementSource, constants are splats, results are cut into `plan.rows` rows.
llvm::LogicalResult verifyKernel(mlir::func::FuncOp kernel);

/// How many bytes of scratch a command's form gives each thread; 0 without a
/// form. Errors are located at a command whose form says anything else, or
/// which has not that much scratch.
llvm::FailureOr<int64_t> parseForm(plan::KernelOp kernel);

/// How many bytes beside its stack a thread of a kernel has use for; 0 if the
/// stack has room for all rows that are worth keeping, or if they are so long
/// that computing them again is no slower. It is as much if results are put in
/// the place of inputs.
int64_t measureScratch(const KernelInstance &instance);

/// Whether a command stands in a body that the CPU executes.
bool isOfCpu(mlir::Operation *command);

/// Compiles every kernel that the CPU's commands of `plan` name, and the
/// softmax of each attention and attention gradient, into one shared library;
/// returns its bytes. Kernels that are the same function are compiled once, and
/// those that are the same code. The library, and where there is none each
/// kernel's object, is taken from the cache ($ACCEL_CACHE, else
/// $XDG_CACHE_HOME/acc, else ~/.cache/acc) if the same code was compiled for
/// the same target before and what was kept is as it was; a warning says where
/// it is not. Errors are located at the op that cannot be compiled.
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
