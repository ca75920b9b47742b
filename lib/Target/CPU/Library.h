// Shared libraries of kernels, linked from an object.

#ifndef ACCEL_LIB_TARGET_CPU_LIBRARY_H
#define ACCEL_LIB_TARGET_CPU_LIBRARY_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/LLVM.h"
#include <string>

namespace accel::cpu {

/// Links an object file into a shared library with lld. Errors: no lld on PATH
/// or beside LLVM; what lld says.
llvm::FailureOr<std::string> linkLibrary(llvm::ArrayRef<char> object,
                                         mlir::Location loc);

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_LIBRARY_H
