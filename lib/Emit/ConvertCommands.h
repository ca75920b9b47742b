// Commands of the plan dialect as commands of the file format.

#ifndef ACCEL_LIB_EMIT_CONVERTCOMMANDS_H
#define ACCEL_LIB_EMIT_CONVERTCOMMANDS_H

#include "Convert.h"

namespace accel::emit {

/// Converts one command (or group). Emits an error for an op that is none.
mlir::FailureOr<rt::Command> convertCommand(mlir::Operation *op,
                                            const BufferIndices &buffers);

} // namespace accel::emit

#endif // ACCEL_LIB_EMIT_CONVERTCOMMANDS_H
