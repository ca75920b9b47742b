// Which CPU code is generated for, and what that code needs.

#ifndef ACCEL_LIB_TARGET_CPU_CPUTARGET_H
#define ACCEL_LIB_TARGET_CPU_CPUTARGET_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/LLVM.h"
#include <string>
#include <vector>

namespace accel::cpu {

/// Code is generated for one of the levels of the x86-64 psABI, so that what it
/// needs is a short list, and tuned for one CPU.
struct CpuTarget {
  std::string text;    ///< as given: "cpu", "cpu:x86-64-v3"
  std::string level;   ///< "x86-64-v3" or "x86-64-v4"
  std::string tune;    ///< LLVM's name of the CPU that is tuned for
  unsigned vectorBits; ///< width of vectors worth using
  bool isHost = false; ///< whether it is the machine that compiles
  /// What the code needs, under the names of /proc/cpuinfo, sorted.
  std::vector<std::string> features;
};

/// Reads "cpu" (this machine) or "cpu:NAME", NAME being x86-64-v3, x86-64-v4,
/// or a CPU that LLVM knows and that has the features of one of the two.
/// Errors: unknown names; CPUs without AVX2.
llvm::FailureOr<CpuTarget>
parseTarget(llvm::StringRef text,
            llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

/// Adds to the features what the forms of the plans' products need.
void addFormFeatures(mlir::ModuleOp plans, CpuTarget &target);

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_CPUTARGET_H
