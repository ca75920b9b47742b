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

/// Whether the line of a frame calls an autograd function; not one of a library
/// whose backward is known to be the derivative of its forward.
bool callsFunction(const SourceLine &frame);

/// Whether the lines that the node's stack trace quotes speak of an autograd
/// function, but for those.
bool speaksOfFunction(const onnx::NodeProto &node);

/// Whether they speak of a detached value.
bool speaksOfDetaching(const onnx::NodeProto &node);

/// Whether the line that made the node calls Python's own `sum`.
bool speaksOfSum(const onnx::NodeProto &node);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_CALLFRAMES_H
