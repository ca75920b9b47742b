// From a plan to an executable file.

#ifndef ACCEL_LIB_EMIT_WRITEEXECUTABLE_H
#define ACCEL_LIB_EMIT_WRITEEXECUTABLE_H

#include "lib/Target/Target.h"

namespace accel::emit {

/// Writes the module of phase `plan`, made for `target`, to `outputPath`, whole
/// or not at all. `code` is what the target has compiled of it, `phaseTexts`
/// the IR of each phase by name, kept for inspection.
/// States whose first value is a file stay there, by a path relative to the
/// output, or, with `embedWeights`, are copied out of it, too, as all other
/// values are. Errors are located: an attribute that the file format lacks, a
/// value that is not there, a plan for another target, a disk that is full.
mlir::LogicalResult
writeExecutable(mlir::ModuleOp plan, const Target &target, const Code &code,
                llvm::ArrayRef<std::pair<std::string, std::string>> phaseTexts,
                llvm::StringRef outputPath, bool embedWeights);

} // namespace accel::emit

#endif // ACCEL_LIB_EMIT_WRITEEXECUTABLE_H
