// What the name of a traced operator alone tells: of a call that is gone no
// more is left. Private to lib/Onnx.
#ifndef ACCEL_LIB_ONNX_OPERATORKINDS_H
#define ACCEL_LIB_ONNX_OPERATORKINDS_H

#include "llvm/ADT/StringRef.h"

namespace accel::onnxio {

/// Operators that make a tensor of nothing but sizes and numbers, or of which
/// only the shape or type of an argument matters.
bool makesConstant(llvm::StringRef op);

/// Operators that do no more than to move, copy or convert elements.
bool isMove(llvm::StringRef op);

/// Operators of which arguments may be integers or truth values.
bool takesIndices(llvm::StringRef op);

/// Operators that `run_decompositions()` takes apart, and the exporter does
/// not.
bool isComposite(llvm::StringRef op);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_OPERATORKINDS_H
