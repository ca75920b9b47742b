// Shared libraries of kernels, linked from objects.

#ifndef ACCEL_LIB_TARGET_CPU_LIBRARY_H
#define ACCEL_LIB_TARGET_CPU_LIBRARY_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/LLVM.h"
#include <string>

namespace accel::cpu {

/// Links object files into a shared library with lld, which exports each of
/// `names`: a symbol, and the objects' hidden one that it stands for. Errors:
/// no lld in ../lib/acc/bin of the program, on PATH or beside LLVM; what lld
/// says.
llvm::FailureOr<std::string>
linkLibrary(llvm::ArrayRef<llvm::StringRef> objects,
            llvm::ArrayRef<std::pair<std::string, std::string>> names,
            mlir::Location loc);

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_LIBRARY_H
