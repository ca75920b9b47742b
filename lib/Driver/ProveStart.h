// What a module that begins as text must show before it is compiled on.

#ifndef ACCEL_LIB_DRIVER_PROVESTART_H
#define ACCEL_LIB_DRIVER_PROVESTART_H

#include "Phases.h"

namespace accel::driver {

/// A module that begins as text.
struct TextStart {
  llvm::StringRef file;
  Phase reached;
  /// Files of `--proved-against`: what phases `train` and `local` ended with.
  llvm::ArrayRef<std::string> provedAgainst;
  bool isEmitted; ///< an executable comes of it
};

/// Runs passes on a module, under a name for progress and times.
using RunPasses = llvm::function_ref<mlir::LogicalResult(
    mlir::ModuleOp, llvm::StringRef,
    llvm::function_ref<void(mlir::PassManager &)>)>;

/// Verifies and proves the module as if it had come the whole way: by the
/// verifier of its phase, and against the programs that were given. Those that
/// later proofs need become part of `phases`. Fails with an error where
/// something does not hold, and where an executable is asked for of a module
/// whose earlier phases are not at hand.
mlir::LogicalResult proveStart(mlir::ModuleOp module, const TextStart &start,
                               PhaseOptions &phases, RunPasses run);

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_PROVESTART_H
