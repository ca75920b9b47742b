// Reads what the frames of calls tell.
#include "CallFrames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace accel::onnxio {

bool isWithinRegion(const onnx::NodeProto &node) {
  std::vector<SourceLine> frames = stackFrames(node);
  return !frames.empty() &&
         StringRef(frames.back().file).starts_with("<eval_with_key>") &&
         !StringRef(frames.back().file).contains(" from ");
}

/// Autograd functions of libraries whose backward is the derivative of their
/// forward, written out: by the call and the end of their file's name.
static const std::pair<StringLiteral, StringLiteral> derivatives[] = {
    {"GeLUFunction.apply(", "transformers/models/bloom/modeling_bloom.py"},
};

bool callsFunction(const SourceLine &frame) {
  StringRef text = frame.text;
  return text.contains(".apply(") &&
         none_of(derivatives, [&](const auto &each) {
           return text.contains(each.first) &&
                  StringRef(frame.file).ends_with(each.second);
         });
}

bool speaksOfFunction(const onnx::NodeProto &node) {
  return any_of(stackFrames(node), callsFunction);
}

bool speaksOfDetaching(const onnx::NodeProto &node) {
  return nodeProperty(node, "pkg.torch.onnx.stack_trace").contains(".detach(");
}

bool speaksOfSum(const onnx::NodeProto &node) {
  std::vector<SourceLine> frames = stackFrames(node);
  StringRef text = frames.empty() ? StringRef() : frames.back().text;
  for (size_t at = text.find("sum("); at != StringRef::npos;
       at = text.find("sum(", at + 1))
    if (at == 0 ||
        !(isAlnum(text[at - 1]) || text[at - 1] == '_' || text[at - 1] == '.'))
      return true;
  return false;
}

} // namespace accel::onnxio
