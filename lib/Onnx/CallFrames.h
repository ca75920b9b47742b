// What the lines that a call was made in tell of its gradient, which is nowhere
// else in the file: the frames of its stack trace. Private to lib/Onnx.
#ifndef ACCEL_LIB_ONNX_CALLFRAMES_H
#define ACCEL_LIB_ONNX_CALLFRAMES_H

#include "NodeInfo.h"

namespace accel::onnxio {

/// Code that torch.export made of a region: of `torch.no_grad()` or
/// `autocast()`, whose body it traces on its own. Of `inference_mode()` nothing
/// is left.
bool isWithinRegion(const onnx::NodeProto &node);

/// Whether the node was made by the forward of an autograd function: a function
/// `forward` below a line that calls `apply`, or one of no module. Not those of
/// libraries whose backward is known to be the derivative of their forward.
/// Frames are of functions `forward` only, so that `apply` called by a helper
/// is seen by the second.
bool isWithinFunction(const onnx::NodeProto &node);

/// Whether the lines that the node's stack trace quotes speak of an autograd
/// function, but for those.
bool speaksOfFunction(const onnx::NodeProto &node);

/// Whether they speak of a detached value.
bool speaksOfDetaching(const onnx::NodeProto &node);

/// Whether the line that made the node calls Python's own `sum`.
bool speaksOfSum(const onnx::NodeProto &node);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_CALLFRAMES_H
