// Sizes of symbolic dimensions that the caller left out. Private to the
// library.
#ifndef ACCEL_LIB_IMPORT_BINDDIMS_H
#define ACCEL_LIB_IMPORT_BINDDIMS_H

#include "Import.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace accel::import {

/// Refuses every size of `options` that no dimension of an input asks for, all
/// at once, with the names that there are.
mlir::LogicalResult checkDims(const onnxio::OnnxFile &file,
                              const ImportOptions &options);

/// Refuses each name of an input's dimension that has no size, all at once.
mlir::LogicalResult checkBound(const onnxio::OnnxFile &file,
                               const ImportOptions &options);

/// Returns `options` with sizes added for those unbound dimensions of inputs
/// that can have only one: exporters call one size `s10` in one input and `s86`
/// in the next. The candidate is the only size bound in the same place of
/// another input; it is taken if the model can be imported with it and cannot
/// with another, which `imports` tells (no diagnostic of it is shown). All
/// other unbound dimensions stay so.
ImportOptions bindDims(const onnxio::OnnxFile &file,
                       const ImportOptions &options, mlir::MLIRContext *context,
                       llvm::function_ref<bool(const ImportOptions &)> imports);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_BINDDIMS_H
