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

/// Places behind `.attribute` in the text.
static SmallVector<size_t> placesBehind(StringRef text, StringRef attribute) {
  SmallVector<size_t> places;
  std::string wanted = "." + attribute.str();
  for (size_t at = text.find(wanted); at != StringRef::npos;
       at = text.find(wanted, at + 1)) {
    size_t end = at + wanted.size();
    if (end == text.size() || !isNamePart(text[end]))
      places.push_back(end);
  }
  return places;
}

static StringRef attributeOf(StringRef parameter) {
  return parameter.contains('.') ? parameter.rsplit('.').second : parameter;
}

size_t countMentions(const onnx::NodeProto &node, StringRef parameter) {
  std::vector<SourceLine> frames = stackFrames(node);
  return frames.empty()
             ? 0
             : placesBehind(frames.back().text, attributeOf(parameter)).size();
}

std::optional<Arithmetic> arithmeticWith(const onnx::NodeProto &node,
                                         StringRef parameter) {
  std::vector<SourceLine> frames = stackFrames(node);
  StringRef attribute = attributeOf(parameter);
  std::string module = modulePath(node);
  if (frames.empty() ||
      parameter != (module.empty() ? "" : module + ".") + attribute.str())
    return std::nullopt;
  StringRef text = frames.back().text;
  SmallVector<size_t> places = placesBehind(text, attribute);
  if (places.size() != 1)
    return std::nullopt;
  StringRef before = text.take_front(places.front() - attribute.size() - 1);
  StringRef after = text.drop_front(places.front());
  if (!before.consume_back("self"))
    return std::nullopt;
  after.consume_front(".float()");
  before = before.rtrim();
  after = after.ltrim();
  StringRef number;
  char op = 0;
  auto isOfNumber = [](char each) { return isAlnum(each) || each == '.'; };
  if (before.ends_with("+") || before.ends_with("*")) {
    op = before.back();
    before = before.drop_back().rtrim();
    size_t start = before.size();
    while (start > 0 && isOfNumber(before[start - 1]))
      --start;
    number = before.drop_front(start);
    before = before.take_front(start).rtrim();
  } else if (!after.empty() && StringRef("+*/").contains(after.front())) {
    op = after.front();
    after = after.drop_front().ltrim();
    number = after.take_while(isOfNumber);
    after = after.drop_front(number.size()).ltrim();
  }
  double value;
  bool isOperand =
      (before.ends_with("(") || before.ends_with(",") ||
       before.ends_with("=")) &&
      (after.empty() || after.starts_with(")") || after.starts_with(","));
  if (!isOperand || number.empty() || number.getAsDouble(value))
    return std::nullopt;
  return Arithmetic{op, value};
}

bool castsToDouble(const onnx::NodeProto &node, StringRef parameter) {
  std::vector<SourceLine> frames = stackFrames(node);
  if (frames.empty())
    return false;
  StringRef text = frames.back().text;
  SmallVector<size_t> places = placesBehind(text, attributeOf(parameter));
  return places.size() == 1 &&
         any_of(ArrayRef<StringRef>{".double()", ".to(torch.float64)",
                                    ".to(torch.double)"},
                [&](StringRef cast) {
                  return text.drop_front(places.front()).starts_with(cast);
                });
}

bool speaksOfSum(const onnx::NodeProto &node) {
  std::vector<SourceLine> frames = stackFrames(node);
  StringRef text = frames.empty() ? StringRef() : frames.back().text;
  for (size_t at = text.find("sum("); at != StringRef::npos;
       at = text.find("sum(", at + 1))
    if (at == 0 || !(isNamePart(text[at - 1]) || text[at - 1] == '.'))
      return true;
  return false;
}

} // namespace accel::onnxio
