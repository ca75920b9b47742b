// Opening IR for MLIR's parser, which descends by recursion and so must never
// be given text that nests deeper than its stack holds.

#ifndef ACCEL_LIB_DRIVER_OPENTEXT_H
#define ACCEL_LIB_DRIVER_OPENTEXT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <optional>
#include <string>

namespace accel::driver {

/// Where a text nests deeper than MLIR's parser can hold.
struct TooDeep {
  size_t line, column; ///< from 1
  std::string message;
};
std::optional<TooDeep> findTooDeep(llvm::StringRef text);

/// Opens IR as text or bytecode; "-" is the standard input. Null after an
/// error, which is printed: there is no such file, or its text nests too deep.
std::unique_ptr<llvm::MemoryBuffer> openText(llvm::StringRef path);

/// Opens and parses a module. Null after an error, which is printed. With
/// `keepsNames` the locations hold what the text calls values
/// (dialects/Accel/ValueName.h), so that it is printed under the same names
/// again.
mlir::OwningOpRef<mlir::ModuleOp> parseModule(llvm::StringRef path,
                                              mlir::MLIRContext *context,
                                              bool keepsNames = false);

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_OPENTEXT_H
