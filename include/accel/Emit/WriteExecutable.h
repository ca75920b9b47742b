// From a plan to an executable file.

#ifndef ACCEL_EMIT_WRITEEXECUTABLE_H
#define ACCEL_EMIT_WRITEEXECUTABLE_H

#include "mlir/IR/BuiltinOps.h"

namespace accel::emit {

struct EmitOptions {
  std::string target = "cpu";        ///< As the user gave it.
  std::vector<std::string> features; ///< CPU features that the code needs.
};

/// Writes the module of phase `plan` to `outputPath`, whole or not at all.
/// `kernels` is the shared library of its kernels (may be empty if it has
/// none), `phaseTexts` the IR of each phase by name, kept for inspection.
/// States whose first value is a file stay there, by a path relative to the
/// output; all other values are copied into it. Errors are located: an
/// attribute that the file format lacks, a value that is not there, a disk that
/// is full.
mlir::LogicalResult
writeExecutable(mlir::ModuleOp plan, llvm::StringRef kernels,
                llvm::ArrayRef<std::pair<std::string, std::string>> phaseTexts,
                const EmitOptions &options, llvm::StringRef outputPath);

} // namespace accel::emit

#endif // ACCEL_EMIT_WRITEEXECUTABLE_H
