// Reads what the frames of calls tell.
#include "CallFrames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace accel::onnxio {

static bool isGenerated(const SourceLine &frame) {
  return StringRef(frame.file).starts_with("<eval_with_key>");
}

bool isWithinRegion(const onnx::NodeProto &node) {
  std::vector<SourceLine> frames = stackFrames(node);
  return !frames.empty() && isGenerated(frames.back());
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

/// Whether more functions `forward` are on the stack than modules that the call
/// is in and lines that call a module's `forward` themselves, and the innermost
/// has no `self`: then it is a function's, and not that of a module which is no
/// part of the model.
static bool hasForwardOfNoModule(const onnx::NodeProto &node,
                                 ArrayRef<SourceLine> frames) {
  unsigned forwards = 0, explained = 1 + moduleScopes(node).size();
  StringRef innermost;
  for (const SourceLine &frame : frames) {
    StringRef text = frame.text;
    if (frame.function == "forward" && !isGenerated(frame)) {
      ++forwards;
      innermost = text;
    }
    // A line that is not quoted may be any.
    explained += text.empty() || text.contains(".forward(") ||
                 (text.contains(".apply(") && !callsFunction(frame));
  }
  return forwards > explained && !innermost.contains("self.");
}

bool isWithinFunction(const onnx::NodeProto &node) {
  std::vector<SourceLine> frames = stackFrames(node);
  for (size_t i = 0; i + 1 < frames.size(); ++i)
    if (callsFunction(frames[i]) && frames[i + 1].function == "forward")
      return true;
  return hasForwardOfNoModule(node, frames);
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
