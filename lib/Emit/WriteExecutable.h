// From a plan to an executable file.

#ifndef ACCEL_LIB_EMIT_WRITEEXECUTABLE_H
#define ACCEL_LIB_EMIT_WRITEEXECUTABLE_H

#include "lib/Target/Target.h"

namespace accel::emit {

/// What a target has compiled of the bodies of its engine.
struct Compiled {
  const Target *target;
  Code code;
};

/// Writes the module of phase `plan` to `outputPath`, whole or not at all.
/// `engines` are what the bodies' engines were compiled to, the first for what
/// the file is for (findTargets gives the targets in that order); `phaseTexts`
/// the IR of each phase by name, kept for inspection.
/// States whose first value is a file stay there, by a path relative to the
/// output, or, with `embedWeights`, are copied out of it, too, as all other
/// values are. Errors are located: an attribute that the file format lacks, a
/// value that is not there, a plan for another target, two targets that call
/// sections alike, a disk that is full.
mlir::LogicalResult
writeExecutable(mlir::ModuleOp plan, llvm::ArrayRef<Compiled> engines,
                llvm::ArrayRef<std::pair<std::string, std::string>> phaseTexts,
                llvm::StringRef outputPath, bool embedWeights);

} // namespace accel::emit

#endif // ACCEL_LIB_EMIT_WRITEEXECUTABLE_H
