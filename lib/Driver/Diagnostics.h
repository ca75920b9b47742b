// How diagnostics reach a person: by ONNX node, module and source line, where
// MLIR would print an attribute.

#ifndef ACCEL_LIB_DRIVER_DIAGNOSTICS_H
#define ACCEL_LIB_DRIVER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include <string>

namespace accel::driver {

/// A location in words: `model.onnx`, `t.mlir:3:5`, or
/// `node 'h.0/attn/MatMul_3' (transformer.h.0.attn, model.py:42)`.
std::string describeLocation(mlir::Location location);

/// A text as one line that a terminal obeys nothing of: names of a model, which
/// are whatever its file says, cannot look like another message. Control
/// characters and bytes that are no UTF-8 become `\\xNN`, and of a very long
/// text the middle is left out. `keepsLines`: line breaks stay.
std::string makePrintable(llvm::StringRef text, bool keepsLines);

/// While it lives, prints every diagnostic of the context on stderr as
/// `<where>: error: <what>`, notes after it.
class DiagnosticPrinter : public mlir::ScopedDiagnosticHandler {
public:
  explicit DiagnosticPrinter(mlir::MLIRContext *context);
};

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_DIAGNOSTICS_H
