// Names of `--cut` that the model's file has, and the program no longer.

#ifndef ACCEL_LIB_DRIVER_CHECKCUTS_H
#define ACCEL_LIB_DRIVER_CHECKCUTS_H

#include "lib/Onnx/OnnxFile.h"
#include "mlir/IR/BuiltinOps.h"

namespace accel::driver {

/// Fails, at the node, for one of `cuts` that is a node of the file and that no
/// op of `module`, in phase `nn`, stands for: it was folded, or left out. Other
/// names are left to the pass that cuts, which knows no file.
mlir::LogicalResult checkCuts(const onnxio::OnnxFile &file,
                              mlir::ModuleOp module,
                              llvm::ArrayRef<std::string> cuts);

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_CHECKCUTS_H
