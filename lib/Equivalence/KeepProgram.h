// What the two passes that prove something have in common: the program that
// they compare with.

#ifndef ACCEL_LIB_EQUIVALENCE_KEEPPROGRAM_H
#define ACCEL_LIB_EQUIVALENCE_KEEPPROGRAM_H

#include "Passes.h"

namespace accel::equivalence {

/// The program that was kept, or that `file` holds; null, with the error
/// `missing` at `module`, if there is none.
mlir::OwningOpRef<mlir::ModuleOp>
takeProgram(mlir::ModuleOp module, const std::shared_ptr<KeptProgram> &kept,
            llvm::StringRef file, llvm::StringRef missing);

/// The padded program that was kept, or that `file` holds, if there is one.
mlir::OwningOpRef<mlir::ModuleOp>
takePadded(mlir::MLIRContext *context, const std::shared_ptr<KeptProgram> &kept,
           llvm::StringRef file);

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_KEEPPROGRAM_H
