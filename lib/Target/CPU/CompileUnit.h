// Kernels that are compiled side by side: each from loops to LLVM IR, and by
// LLVM to an object that has no name of the program's. So it is found again
// where another program has the same code: kernels of a model hardly differ
// between its optimizers and layouts.

#ifndef ACCEL_LIB_TARGET_CPU_COMPILEUNIT_H
#define ACCEL_LIB_TARGET_CPU_COMPILEUNIT_H

#include "EmitKernel.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>
#include <optional>
#include <string>

namespace accel::cpu {

/// One kernel's code; that of none, for a library of nothing, which the linker
/// makes of an object all the same.
struct KernelCode {
  KernelCode() = default;
  KernelCode(llvm::StringRef symbol, const KernelInstance *instance)
      : symbol(symbol), instance(instance) {}
  KernelCode(llvm::StringRef symbol, const SoftmaxDesc &softmax)
      : symbol(symbol), softmax(softmax) {}

  std::string symbol; ///< what the program calls it; empty of none
  const KernelInstance *instance = nullptr;
  std::optional<SoftmaxDesc> softmax; ///< if it is no instance

  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<llvm::Module> llvm;
  std::string text;       ///< all that the object is made of
  std::string name;       ///< of the object's function: the hash of the text
  bool isMissing = false; ///< Whether the object is to be made.
  std::string object;
};

/// Kernels that one thread compiles: so many at a time, whatever the machine
/// has, so that it is the same library everywhere. Has contexts of its own:
/// threads share nothing, and passes may load no dialects.
class CompileUnit {
public:
  static constexpr size_t kKernels = 8;

  explicit CompileUnit(const CpuTarget &target);

  /// Makes the code and its text; says what is wrong with it.
  void emit();
  /// Makes the objects that are missing.
  void optimizeAndAssemble();

private:
  bool emit(KernelCode &code);
  bool assemble(KernelCode &code);

  const CpuTarget &target;
  mlir::MLIRContext context;
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::TargetMachine> machine;

public:
  std::string problem;           ///< empty while all is well
  std::vector<KernelCode> codes; ///< behind the contexts, which outlive them
};

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_COMPILEUNIT_H
