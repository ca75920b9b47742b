// Undoes what an exporter did to a parameter. Private to the library.
#ifndef ACCEL_LIB_IMPORT_UNDOSTEPS_H
#define ACCEL_LIB_IMPORT_UNDOSTEPS_H

#include "lib/Onnx/Parameters.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace accel::import {

/// What was before a step of those that are undone: a reshape of the whole
/// parameter, repetition, a cast, an addition, a product. `shape` is the
/// parameter's, `element` what a cast was made from.
mlir::DenseElementsAttr undoStep(const onnxio::ParameterStep &step,
                                 mlir::DenseElementsAttr value,
                                 llvm::ArrayRef<int64_t> shape,
                                 mlir::Type element);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_UNDOSTEPS_H
