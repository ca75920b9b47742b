// A program as the ONNX file that an exporter would write of it, and what acc
// imports of that.

#ifndef ACCEL_TEST_FUZZ_PROGRAMS_ONNXFORM_H
#define ACCEL_TEST_FUZZ_PROGRAMS_ONNXFORM_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace accel::fuzz {

/// The bytes of a model; empty if no file means this program (padding indices
/// and dropout are in exporters' own metadata, and results of attention beside
/// its first in none).
std::string writeOnnx(mlir::ModuleOp program);

/// Imports a model that `program` was written as, up to phase `nn`, with the
/// program's first values of states. Null, with an error told to the context,
/// if it is refused.
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(const std::string &bytes,
                                             mlir::ModuleOp program);

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_PROGRAMS_ONNXFORM_H
