// The text of a module after a phase, for people. Private to the library.

#ifndef ACCEL_LIB_DRIVER_PHASETEXT_H
#define ACCEL_LIB_DRIVER_PHASETEXT_H

#include "mlir/IR/BuiltinOps.h"

namespace accel::driver {

/// Prints `module` as IR that parses back to it, and which one can read: values
/// are called after the nodes, inputs and states that they come from, and a
/// signature that is too long for a line has one for each argument. With
/// --mlir-print-debuginfo or the generic form it prints what MLIR prints.
void printPhaseText(mlir::ModuleOp module, llvm::raw_ostream &os);

/// Likewise, whatever flags of MLIR's printer the command line has: what an
/// executable keeps.
void printKeptText(mlir::ModuleOp module, llvm::raw_ostream &os);

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_PHASETEXT_H
