// Reads what the frames of calls tell.
#include "CallFrames.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace accel::onnxio {

bool isWithinRegion(ArrayRef<SourceLine> frames) {
  return !frames.empty() &&
         StringRef(frames.back().file).starts_with("<eval_with_key>");
}

/// Autograd functions of libraries whose backward is the derivative of their
/// forward, written out: by the call and the end of their file's name.
static const std::pair<StringLiteral, StringLiteral> derivatives[] = {
    {"GeLUFunction.apply(", "transformers/models/bloom/modeling_bloom.py"},
};

static bool callsFunction(const SourceLine &frame) {
  StringRef text = frame.text;
  return text.contains(".apply(") &&
         none_of(derivatives, [&](const auto &each) {
           return text.contains(each.first) &&
                  StringRef(frame.file).ends_with(each.second);
         });
}

bool isWithinFunction(ArrayRef<SourceLine> frames) {
  for (size_t i = 0; i + 1 < frames.size(); ++i)
    if (callsFunction(frames[i]) && frames[i + 1].function == "forward")
      return true;
  return false;
}

bool speaksOfFunction(const onnx::NodeProto &node) {
  return any_of(stackFrames(node), callsFunction);
}

bool speaksOfDetaching(const onnx::NodeProto &node) {
  return nodeProperty(node, "pkg.torch.onnx.stack_trace").contains(".detach(");
}

} // namespace accel::onnxio
