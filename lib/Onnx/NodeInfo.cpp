// Reads the metadata that PyTorch's exporters attach to nodes. All of it is
// text made by Python's str(): parsed leniently, and absent where it does not
// look as expected; nothing here can fail.
#include "NodeInfo.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace llvm;

namespace accel::onnxio {

StringRef nodeProperty(const onnx::NodeProto &node, StringRef key) {
  for (const onnx::StringStringEntryProto &entry : node.metadata_props())
    if (StringRef(entry.key()) == key)
      return entry.value();
  return {};
}

StringRef nodeLocationName(const onnx::NodeProto &node) { return node.name(); }

std::vector<std::string> parsePythonList(StringRef text) {
  std::vector<std::string> items;
  size_t at = 0;
  while (at < text.size()) {
    char quote = text[at++];
    if (quote != '\'' && quote != '"')
      continue;
    std::string item;
    for (; at < text.size() && text[at] != quote; ++at) {
      if (text[at] == '\\' && at + 1 < text.size())
        ++at;
      item += text[at];
    }
    ++at;
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<ModuleScope> enclosingModules(const onnx::NodeProto &node) {
  // `: W/model: pkg.Gpt2/model.wte: torch.Embedding/embedding: aten.embedding`
  std::vector<ModuleScope> scopes;
  SmallVector<StringRef> parts;
  nodeProperty(node, "namespace").split(parts, '/');
  for (StringRef part : parts) {
    auto [path, className] = part.split(": ");
    scopes.push_back(
        {className.empty() ? "" : path.trim().str(), className.trim().str()});
  }
  if (StringRef listed = nodeProperty(node, "pkg.torch.onnx.name_scopes");
      !listed.empty()) {
    std::vector<std::string> paths = parsePythonList(listed);
    if (paths.size() != scopes.size())
      scopes.assign(paths.size(), {});
    for (auto [scope, path] : llvm::zip(scopes, paths))
      scope.path = std::move(path);
  }
  if (!scopes.empty())
    scopes.pop_back(); // the call itself
  llvm::erase_if(scopes, [](const ModuleScope &scope) {
    return scope.path.empty() || scope.path == ":";
  });
  return scopes;
}

std::vector<std::string> moduleScopes(const onnx::NodeProto &node) {
  std::vector<std::string> paths;
  for (ModuleScope &scope : enclosingModules(node))
    paths.push_back(std::move(scope.path));
  return paths;
}

std::string modulePath(const onnx::NodeProto &node) {
  std::vector<std::string> scopes = moduleScopes(node);
  return scopes.empty() ? std::string() : scopes.back();
}

std::vector<SourceLine> stackFrames(const onnx::NodeProto &node) {
  // As Python prints them:
  //   File "model.py", line 12, in forward
  //     y = self.linear(x)
  static constexpr StringLiteral kStart = "File \"";
  StringRef trace = nodeProperty(node, "pkg.torch.onnx.stack_trace");
  std::vector<SourceLine> frames;
  while (true) {
    size_t start = trace.find(kStart);
    if (start == StringRef::npos)
      return frames;
    trace = trace.substr(start + kStart.size());
    auto [head, rest] = trace.split("\", line ");
    SourceLine found;
    found.file = head.str();
    if (rest.consumeInteger(10, found.line))
      continue;
    auto [where, text] = rest.split('\n');
    found.function = where.rsplit(", in ").second.str();
    // A line that is not to be had is left out.
    if (!text.ltrim().starts_with(kStart))
      found.text = text.split('\n').first.trim().str();
    frames.push_back(std::move(found));
  }
}

static bool isTorch(const SourceLine &frame) {
  StringRef file = frame.file;
  return file.contains("-packages/torch/") || file.starts_with("torch/") ||
         file.starts_with("<");
}

static bool isInstalled(const SourceLine &frame) {
  StringRef file = frame.file;
  return isTorch(frame) || file.contains("site-packages/") ||
         file.contains("dist-packages/") || file.contains("/lib/python3");
}

/// The innermost frame that `isOther` is false of, by number; none if there is
/// none.
static std::optional<size_t>
innermost(ArrayRef<SourceLine> frames,
          function_ref<bool(const SourceLine &)> isOther) {
  for (size_t i = frames.size(); i-- > 0;)
    if (!isOther(frames[i]))
      return i;
  return std::nullopt;
}

std::optional<SourceLine> sourceLine(const onnx::NodeProto &node) {
  std::vector<SourceLine> frames = stackFrames(node);
  if (frames.empty())
    return std::nullopt;
  std::optional<size_t> found = innermost(frames, isInstalled);
  if (!found)
    found = innermost(frames, isTorch);
  return frames[found.value_or(frames.size() - 1)];
}

std::optional<SourceLine> libraryLine(const onnx::NodeProto &node) {
  std::vector<SourceLine> frames = stackFrames(node);
  std::optional<size_t> own = innermost(frames, isInstalled);
  if (!own || *own + 1 == frames.size())
    return std::nullopt;
  size_t outsideTorch = *innermost(frames, isTorch);
  return outsideTorch > *own ? frames[outsideTorch] : frames.back();
}

StringRef tracedOperator(const onnx::NodeProto &node) {
  StringRef target = nodeProperty(node, "pkg.torch.onnx.fx_node")
                         .split("[target=")
                         .second.split("](")
                         .first;
  if (target.consume_front("torch.ops."))
    return target.split('.').second; // behind the namespace
  size_t dot = target.rfind('.');
  return dot == StringRef::npos ? target : target.substr(dot + 1);
}

std::string describeCall(const onnx::NodeProto &node) {
  StringRef value =
      nodeProperty(node, "pkg.torch.onnx.fx_node").split(' ').first;
  StringRef name = tracedOperator(node).split('.').first;
  if (!value.starts_with("%") || name.empty())
    return "";
  return (value + " = " + name).str();
}

const onnx::AttributeProto *findAttribute(const onnx::NodeProto &node,
                                          StringRef name) {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (StringRef(attribute.name()) == name)
      return &attribute;
  return nullptr;
}

} // namespace accel::onnxio
