// Functions with a point where they have no gradient, built so that the rules
// of lib/Autodiff give PyTorch's value there. One ONNX operator stands for
// several functions of PyTorch with several values (Clip for clamp, hardtanh
// and relu6); the traced call says which, and where there is none the most
// common one is meant. docs/Numerics.md lists them.
#ifndef ACCEL_LIB_IMPORT_KINKS_H
#define ACCEL_LIB_IMPORT_KINKS_H

#include "NodeImporter.h"

namespace accel::import {

/// Whether the node came from a call of the operator `name`, of any overload.
bool isTracedAs(const onnx::NodeProto &node, llvm::StringRef name);

/// f(x), and 0 with gradient 0 where x is 0: a norm's root.
mlir::Value zeroAtZero(NodeImporter &n, mlir::Value x,
                       llvm::function_ref<mlir::Value(mlir::Value)> f);

/// x held within [low, high], of which either may be null. On a bound x has the
/// gradient; with `strict` nothing has.
mlir::Value clip(NodeImporter &n, mlir::Value x, mlir::Value low,
                 mlir::Value high, bool strict);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_KINKS_H
