// Parses the text of PyTorch's graph signature and FX calls.
#include "TracedCall.h"
#include "NodeInfo.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace accel::onnxio {

/// The text between the first `'` or `"` of `text` and its partner.
static StringRef quoted(StringRef text) {
  size_t start = text.find_first_of("'\"");
  if (start == StringRef::npos)
    return {};
  return text.substr(start + 1).split(text[start]).first;
}

static std::optional<SignatureInput::Kind> kindOf(StringRef text) {
  return StringSwitch<std::optional<SignatureInput::Kind>>(text)
      .Case("PARAMETER", SignatureInput::Parameter)
      .Case("BUFFER", SignatureInput::Buffer)
      .Case("CONSTANT_TENSOR", SignatureInput::Constant)
      .Case("USER_INPUT", SignatureInput::User)
      .Default(std::nullopt);
}

/// `p_w: PARAMETER target='w'`, a line each, between "# inputs" and "#
/// outputs".
static std::vector<SignatureInput> readListedSignature(StringRef text) {
  std::vector<SignatureInput> inputs;
  text = text.split("# inputs").second.split("# outputs").first;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    auto [name, what] = line.split(": ");
    if (std::optional<SignatureInput::Kind> kind =
            kindOf(what.split(' ').first.trim()))
      inputs.push_back({*kind, name.trim().str(),
                        quoted(what.split("target=").second).str()});
  }
  return inputs;
}

/// `InputSpec(kind=<InputKind.PARAMETER: 2>, arg=TensorArgument(name='p_w'),
/// target='w', …)`.
static std::vector<SignatureInput> readReprSignature(StringRef text) {
  std::vector<SignatureInput> inputs;
  text = text.split("output_specs=").first;
  for (;;) {
    text = text.split("InputSpec(kind=<InputKind.").second;
    if (text.empty())
      return inputs;
    StringRef spec = text.split("InputSpec(").first;
    if (std::optional<SignatureInput::Kind> kind =
            kindOf(spec.split(':').first))
      inputs.push_back({*kind, quoted(spec.split("name=").second).str(),
                        quoted(spec.split("target=").second).str()});
  }
}

std::vector<SignatureInput> readSignature(const onnx::GraphProto &graph) {
  for (const onnx::StringStringEntryProto &entry : graph.metadata_props())
    if (entry.key() == "pkg.torch.export.ExportedProgram.graph_signature")
      return StringRef(entry.value()).contains("# inputs")
                 ? readListedSignature(entry.value())
                 : readReprSignature(entry.value());
  return {};
}

std::vector<SignatureOutput>
readSignatureOutputs(const onnx::GraphProto &graph) {
  std::vector<SignatureOutput> outputs;
  for (const onnx::StringStringEntryProto &entry : graph.metadata_props()) {
    if (entry.key() != "pkg.torch.export.ExportedProgram.graph_signature")
      continue;
    // `add: BUFFER_MUTATION target='n'`, `mean: USER_OUTPUT`
    StringRef text = StringRef(entry.value()).split("# outputs").second;
    while (!text.empty()) {
      auto [line, rest] = text.split('\n');
      text = rest;
      auto [name, what] = line.split(": ");
      StringRef kind = what.split(' ').first.trim();
      if (kind.ends_with("_MUTATION"))
        outputs.push_back(
            {name.trim().str(), quoted(what.split("target=").second).str()});
      else if (kind == "USER_OUTPUT")
        outputs.push_back({name.trim().str(), ""});
    }
  }
  return outputs;
}

StringRef TracedArgument::value() const {
  StringRef name = text;
  return name.consume_front("%") ? name : StringRef();
}

const TracedArgument *TracedCall::argument(unsigned position,
                                           StringRef keyword) const {
  if (position < arguments.size() && arguments[position].keyword.empty())
    return &arguments[position];
  for (const TracedArgument &argument : arguments)
    if (!keyword.empty() && argument.keyword == keyword)
      return &argument;
  return nullptr;
}

size_t forEachUnquoted(StringRef text, function_ref<bool(size_t)> visit) {
  char quote = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (quote) {
      if (c == '\\')
        ++at;
      else if (c == quote)
        quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (!visit(at)) {
      return at;
    }
  }
  return text.size();
}

/// Takes Python text up to the first comma or closing bracket that is outside
/// inner brackets and strings.
static StringRef takeItem(StringRef &text) {
  int depth = 0;
  size_t at = forEachUnquoted(text, [&](size_t place) {
    char c = text[place];
    if (StringRef("([{").contains(c))
      ++depth;
    else if (StringRef(")]}").contains(c))
      return depth-- != 0;
    return c != ',' || depth != 0;
  });
  StringRef item = text.take_front(at).trim();
  text = text.drop_front(at);
  return item;
}

/// Arguments from behind the opening bracket to the closing one.
static void takeArguments(StringRef text, bool keywords,
                          std::vector<TracedArgument> &arguments) {
  do {
    StringRef item = takeItem(text);
    if (!item.empty()) {
      if (keywords) {
        auto [key, value] = item.split(": ");
        arguments.push_back({key.str(), value.str()});
      } else {
        arguments.push_back({"", item.str()});
      }
    }
  } while (text.consume_front(","));
}

std::optional<TracedCall> tracedCall(const onnx::NodeProto &node) {
  StringRef text = nodeProperty(node, "pkg.torch.onnx.fx_node");
  if (!text.consume_front("%"))
    return std::nullopt;
  TracedCall call;
  call.result = text.take_until([](char c) { return c == ' '; });
  unsigned users;
  StringRef counted = text.split("[num_users=").second;
  if (!counted.consumeInteger(10, users))
    call.users = users;
  call.op = tracedOperator(node).split('.').first.str();
  StringRef rest = text.split("](").second;
  takeArguments(rest.split("args = (").second, false, call.arguments);
  takeArguments(rest.rsplit("kwargs = {").second, true, call.arguments);
  return call;
}

} // namespace accel::onnxio
