// What the lines that a call was made in tell of its gradient, which is nowhere
// else in the file: the frames of its stack trace. Private to lib/Onnx.
#ifndef ACCEL_LIB_ONNX_CALLFRAMES_H
#define ACCEL_LIB_ONNX_CALLFRAMES_H

#include "NodeInfo.h"
#include "llvm/ADT/StringExtras.h"

namespace accel::onnxio {

/// Whether a character may be within a name of Python's.
inline bool isNamePart(char each) { return llvm::isAlnum(each) || each == '_'; }

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

/// How often the line that made the node names the parameter by its attribute:
/// `.weight` of `model.norm.weight`.
size_t countMentions(const onnx::NodeProto &node, llvm::StringRef parameter);

/// `op` (`+`, `*`, `/`) with a number as its other operand.
struct Arithmetic {
  char op;
  double number;
};

/// What the line that made the node does to the parameter of its own module,
/// within brackets or as an operand of its own: `(1.0 + self.weight)`. Nothing
/// where it names the parameter more than once, or divides by it.
std::optional<Arithmetic> arithmeticWith(const onnx::NodeProto &node,
                                         llvm::StringRef parameter);

/// Whether the line that made the node casts the parameter to f64, where it
/// names it: `self.weight.double()`.
bool castsToDouble(const onnx::NodeProto &node, llvm::StringRef parameter);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_CALLFRAMES_H
