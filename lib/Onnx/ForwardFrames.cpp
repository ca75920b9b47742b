// Decides of each frame whether it is a module's.
#include "ForwardFrames.h"
#include "CallFrames.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace accel::onnxio {

//===-- Lines -------------------------------------------------------------===//

/// What the line reads of `self`, by name.
static SmallVector<StringRef> attributesOfSelf(StringRef text) {
  static constexpr StringLiteral kSelf = "self.";
  SmallVector<StringRef> names;
  for (size_t at = text.find(kSelf); at != StringRef::npos;
       at = text.find(kSelf, at + 1))
    if (at == 0 || !isNamePart(text[at - 1]))
      names.push_back(text.substr(at + kSelf.size()).take_while(isNamePart));
  return names;
}

/// Methods of the context that an autograd function may call `self`, too.
static bool isContexts(StringRef name) {
  return StringSwitch<bool>(name)
      .Cases({"save_for_backward", "mark_dirty", "mark_non_differentiable",
              "set_materialize_grads", "saved_tensors", "needs_input_grad",
              "save_for_forward"},
             true)
      .Default(false);
}

static bool readsState(StringRef text) {
  return any_of(attributesOfSelf(text),
                [](StringRef name) { return !isContexts(name); });
}

/// Whether it calls a method or a module of `self`: a context has none.
static bool callsOfSelf(StringRef text) {
  return any_of(attributesOfSelf(text), [](StringRef name) {
    return *name.end() == '(' && !isContexts(name);
  });
}

/// Whether it makes an object of a class and calls that: `nn.Tanh()(x)`. A
/// class is known by its first letter.
static bool callsNewObject(StringRef text) {
  for (size_t at = text.find(")("); at != StringRef::npos;
       at = text.find(")(", at + 1)) {
    int depth = 0;
    size_t open = at + 1;
    while (open-- > 0) {
      depth += text[open] == ')';
      depth -= text[open] == '(';
      if (depth == 0)
        break;
    }
    if (depth != 0)
      continue;
    StringRef name = text.take_front(open);
    size_t dot = name.find_last_not_of("abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    name = dot == StringRef::npos ? name : name.substr(dot + 1);
    if (!name.empty() && isUpper(name.front()))
      return true;
  }
  return false;
}

//===-- Frames ------------------------------------------------------------===//

/// A file of PyTorch's own modules. Those whose names begin with `_` hold
/// autograd functions.
static bool isTorchModule(const SourceLine &frame) {
  auto [folder, name] = StringRef(frame.file).rsplit('/');
  return (folder.ends_with("torch/nn/modules") ||
          folder.ends_with("torch/ao/nn/qat/modules")) &&
         !name.starts_with("_");
}

/// A container of PyTorch's, whose forward calls modules alone.
static bool callsItsModules(const SourceLine &frame) {
  return isTorchModule(frame) &&
         StringRef(frame.file).ends_with("/container.py");
}

/// A file of modules alone, which functions of transformers make as they are
/// called.
static bool isActivation(const SourceLine &frame) {
  return StringRef(frame.file).ends_with("/transformers/activations.py");
}

static bool isGenerated(const SourceLine &frame) {
  return StringRef(frame.file).starts_with("<eval_with_key>");
}

/// What functions called by the same lines, and of one file, have in common.
static std::string keyOf(ArrayRef<SourceLine> frames, size_t number) {
  std::string key;
  for (const SourceLine &frame : frames.take_front(number))
    key += frame.file + ":" + std::to_string(frame.line) + "\n";
  return key + frames[number].file;
}

/// A module whose forward is not in a file of PyTorch's modules. A parametrized
/// one has that of the module that it was.
static bool hasForwardElsewhere(StringRef className) {
  constexpr StringLiteral kTorch = "torch.nn.", kUtilities = "torch.nn.utils.",
                          kParametrized =
                              "torch.nn.utils.parametrize.Parametrized";
  return !className.starts_with(kTorch) ||
         (className.starts_with(kUtilities) &&
          !className.starts_with(kParametrized));
}

ForwardFrames::ForwardFrames(const TracedProgram &program) {
  for (const Call &call : program.calls()) {
    std::vector<SourceLine> frames = stackFrames(*call.nodes.front());
    for (size_t i = 1; i < frames.size(); ++i)
      if (readsState(frames[i].text))
        withState.insert(keyOf(frames, i));
  }
  // `model.layers.0._orig_mod.weight`
  for (const SignatureInput &input : program.signature()) {
    StringRef module = StringRef(input.target).split("._orig_mod.").first;
    if (module.size() < input.target.size())
      compiled.insert(module.rsplit('.').second.empty()
                          ? module
                          : module.rsplit('.').second);
  }
}

/// `next` is the first of the modules around the call that no frame before has
/// taken.
bool ForwardFrames::isModules(ArrayRef<SourceLine> frames, size_t number,
                              ArrayRef<ModuleScope> modules,
                              size_t &next) const {
  const SourceLine &frame = frames[number];
  StringRef caller = frames[number - 1].text;
  if (isGenerated(frame) || isTorchModule(frame) || isActivation(frame) ||
      caller.contains(".forward(") ||
      (caller.contains(".apply(") && !callsFunction(frames[number - 1])))
    return true;
  for (size_t i = next; i < modules.size(); ++i)
    if (hasForwardElsewhere(modules[i].className)) {
      next = i + 1;
      return true;
    }
  return callsOfSelf(frame.text) || callsItsModules(frames[number - 1]) ||
         (callsNewObject(caller) &&
          withState.contains(keyOf(frames, number))) ||
         any_of(attributesOfSelf(caller),
                [&](StringRef name) { return compiled.contains(name); });
}

std::optional<ForwardFrames::Function>
ForwardFrames::functionAround(const onnx::NodeProto &node) const {
  std::vector<SourceLine> frames = stackFrames(node);
  std::vector<ModuleScope> modules = enclosingModules(node);
  size_t next = 0;
  for (size_t i = 1; i < frames.size(); ++i) {
    if (frames[i].function != "forward")
      continue;
    bool isApplied = callsFunction(frames[i - 1]);
    if (isApplied || !isModules(frames, i, modules, next))
      return Function{frames[i], isApplied};
  }
  return std::nullopt;
}

} // namespace accel::onnxio
