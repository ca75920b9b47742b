// Shared libraries of kernels: linked from an object, kept on disk.

#ifndef ACCEL_LIB_TARGET_CPU_LIBRARY_H
#define ACCEL_LIB_TARGET_CPU_LIBRARY_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/LLVM.h"
#include <optional>
#include <string>

namespace accel::cpu {

/// Links an object file into a shared library with lld. Errors: no lld on PATH
/// or beside LLVM; what lld says.
llvm::FailureOr<std::string> linkLibrary(llvm::ArrayRef<char> object,
                                         mlir::Location loc);

/// The place on disk of the library of some code, which says in its attributes
/// for which CPU it is. Not being able to keep it is no error.
class LibraryCache {
public:
  explicit LibraryCache(llvm::StringRef code);
  std::optional<std::string> find() const;
  void insert(llvm::StringRef library) const;

private:
  std::string folder, path; ///< empty: no home to keep things in
};

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_LIBRARY_H
