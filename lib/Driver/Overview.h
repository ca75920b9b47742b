// What a plan comes to, in the few lines that somebody at a terminal wants.

#ifndef ACCEL_LIB_DRIVER_OVERVIEW_H
#define ACCEL_LIB_DRIVER_OVERVIEW_H

#include "mlir/IR/BuiltinOps.h"

namespace accel::driver {

/// Prints ranks, planned bytes of a rank and commands of a call of the module,
/// which is in phase `plan` and came from the file `input`; and how to get its
/// executable, its text and its reports.
void printOverview(mlir::ModuleOp module, llvm::StringRef input,
                   llvm::raw_ostream &os);

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_OVERVIEW_H
