// Commands of the plan dialect as commands of the file format.

#ifndef ACCEL_LIB_EMIT_CONVERTCOMMANDS_H
#define ACCEL_LIB_EMIT_CONVERTCOMMANDS_H

#include "Convert.h"
#include "lib/Target/Target.h"

namespace accel::emit {

/// What commands of a program name.
struct ProgramNames {
  /// Of the body at hand: says what its code calls what commands call.
  const Target *target = nullptr;
  BufferIndices buffers;
  /// The program's inputs, by the buffers that they are read into.
  llvm::DenseMap<int64_t, std::string> inputs;
  llvm::DenseMap<mlir::StringAttr, int64_t> bodies; ///< numbers in the file
  mlir::SymbolTableCollection symbols;
};

/// Converts one command (or group). Emits an error for an op that is none.
mlir::FailureOr<rt::Command> convertCommand(mlir::Operation *op,
                                            ProgramNames &names);

} // namespace accel::emit

#endif // ACCEL_LIB_EMIT_CONVERTCOMMANDS_H
