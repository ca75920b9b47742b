// Attributes, types and locations as the file format has them.

#ifndef ACCEL_LIB_EMIT_CONVERT_H
#define ACCEL_LIB_EMIT_CONVERT_H

#include "accel-rt/PlanFormat.h"
#include "dialects/Plan/Plan.h"

namespace accel::emit {

/// Buffers by name, as indices into the program's list.
using BufferIndices = llvm::DenseMap<mlir::Attribute, int64_t>;

/// Each emits an error at `loc` for what the format does not have.
mlir::FailureOr<rt::DType> convertType(mlir::Location loc, mlir::Type type);
mlir::FailureOr<rt::View> convertView(mlir::Location loc, plan::ViewAttr view,
                                      const BufferIndices &buffers);
mlir::FailureOr<rt::Form> convertForm(mlir::Location loc,
                                      mlir::DictionaryAttr form);

rt::Part convertPart(plan::PartAttr part);

/// The elements of a value in row-major order, little-endian; i1 takes a byte.
mlir::FailureOr<std::string> getBytes(mlir::Location loc,
                                      mlir::Attribute value);

/// The names of the ONNX nodes that an op stands for, "MatMul#3, Add#4"; for
/// one that stands for none, the pass that inserted it.
std::string getNodeNames(mlir::Operation *op);

} // namespace accel::emit

#endif // ACCEL_LIB_EMIT_CONVERT_H
