// What the lines that a call was made in tell of its gradient, which is nowhere
// else in the file: the frames of its stack trace. Private to lib/Onnx.
#ifndef ACCEL_LIB_ONNX_CALLFRAMES_H
#define ACCEL_LIB_ONNX_CALLFRAMES_H

#include "accel/Onnx/NodeInfo.h"
#include "llvm/ADT/ArrayRef.h"

namespace accel::onnxio {

/// Code that torch.export made of a region: of `torch.no_grad()` or
/// `autocast()`, whose body it traces on its own. Of `inference_mode()` nothing
/// is left.
bool isWithinRegion(llvm::ArrayRef<SourceLine> frames);

/// Whether a frame is the forward of an autograd function: a function `forward`
/// below a line that calls `apply`. Not those of libraries whose backward is
/// known to be the derivative of their forward.
bool isWithinFunction(llvm::ArrayRef<SourceLine> frames);

/// Whether the lines that the node's stack trace quotes speak of an autograd
/// function, but for those.
bool speaksOfFunction(const onnx::NodeProto &node);

/// Whether they speak of a detached value.
bool speaksOfDetaching(const onnx::NodeProto &node);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_CALLFRAMES_H
