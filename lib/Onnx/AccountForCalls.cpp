// Accounting for the arguments of traced calls.
#include "AccountForCalls.h"
#include "CallMeaning.h"
#include "ParameterRoles.h"
#include "accel/Onnx/NodeInfo.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>
#include <cstring>

using namespace llvm;

namespace accel::onnxio {

namespace {
class Accountant {
public:
  Accountant(const TracedProgram &program, const ParameterBuilder &builder,
             std::vector<Doubt> &doubts)
      : program(program), file(program.file), builder(builder), doubts(doubts) {
  }
  void run();

private:
  void checkInitializer(const InitializerUse &use);
  void checkParameters(const Call &call);
  void checkGone(const Call &call);
  void checkOutputs();
  bool isExplained(const Call &call, StringRef gone) const;
  SmallVector<StringRef> unmatched(const Call &call) const;
  bool isMeantBy(const Call &call, const InitializerUse &use) const;
  bool isMerged(unsigned parameter) const;
  bool hasLostUser(StringRef value) const;
  bool dependsOnParameter(StringRef value) const;
  bool findDifferences() const;
  std::string mergedWith(const Call &call, StringRef gone) const;
  std::optional<unsigned> parameterOf(StringRef placeholder) const;
  std::string unitScalar(StringRef op) const;
  void doubt(const onnx::NodeProto &node, std::vector<std::string> parameters,
             std::string message, Doubt::Kind kind = Doubt::Folded) {
    doubts.push_back({&node, std::move(parameters), std::move(message), kind});
  }

  const TracedProgram &program;
  const OnnxFile &file;
  const ParameterBuilder &builder;
  std::vector<Doubt> &doubts;
  std::vector<InitializerUse> uses;
  llvm::DenseMap<std::pair<const onnx::NodeProto *, unsigned>, unsigned> claims;
  /// Parameters that each call's nodes read, or that were put back there.
  llvm::DenseMap<const Call *, SmallVector<unsigned>> readBy;
  /// Whether equal nodes may have come from calls that differ in training.
  bool mayDiffer = false;
  /// How many parameters each initializer stands for.
  llvm::StringMap<SmallVector<unsigned>> owners;
};
} // namespace

/// Operators that make a tensor of nothing but sizes and numbers, or of which
/// only the shape or type of an argument matters.
static bool makesConstant(StringRef op) {
  return StringSwitch<bool>(op)
      .Cases({"zeros",
              "ones",
              "full",
              "empty",
              "arange",
              "eye",
              "tril_indices",
              "triu_indices",
              "linspace",
              "scalar_tensor",
              "lift_fresh_copy",
              "zeros_like",
              "ones_like",
              "full_like",
              "empty_like",
              "new_zeros",
              "new_ones",
              "new_full",
              "new_empty",
              "scalar_tensor_default"},
             true)
      .Default(false);
}

std::optional<unsigned> Accountant::parameterOf(StringRef placeholder) const {
  const SignatureInput *input = program.input(placeholder);
  if (!input || input->kind != SignatureInput::Parameter)
    return std::nullopt;
  return builder.find(input->target);
}

bool Accountant::isMerged(unsigned parameter) const {
  bool merged = false;
  builder.forEachClaim(parameter, [&](const InitializerUse &use) {
    merged |= owners.lookup(use.tensor->name()).size() > 1;
  });
  return merged;
}

/// The values that the call's nodes compute with and that are not among its
/// arguments: something between them and the call is gone.
SmallVector<StringRef> Accountant::unmatched(const Call &call) const {
  SmallVector<StringRef> found;
  for (const std::string &operand : call.operands) {
    const onnx::NodeProto *maker = program.maker(operand);
    StringRef placeholder = program.placeholder(operand);
    if ((!maker && placeholder.empty()) || call.takes(operand) ||
        call.takes(placeholder))
      continue;
    const Call *from = maker ? program.callOf(*maker) : nullptr;
    if (!from || !call.takes(from->text.result))
      found.push_back(operand);
  }
  return found;
}

/// Whether an initializer that the call reads is the value that is gone, or was
/// computed from it.
bool Accountant::isExplained(const Call &call, StringRef gone) const {
  return any_of(call.operands, [&](const std::string &operand) {
    if (!file.findInitializer(operand))
      return false;
    const std::vector<std::string> *from = program.foldedFrom(operand);
    return operand == gone || (from && is_contained(*from, gone.str()));
  });
}

//===-- Initializers that are not what they look like ---------------------===//

/// Whether something the call says is what the operand is: a literal, a buffer,
/// or a value inside the call.
bool Accountant::isMeantBy(const Call &call, const InitializerUse &use) const {
  const TracedArgument *argument = nullptr;
  if (std::optional<OperandRole> role = operandRole(
          call.text, *use.node, use.operand, use.tensor->dims_size()))
    argument = role->argument;
  else
    argument = elementwiseArgument(call.text, *use.node, use.operand);
  if (argument) {
    StringRef value = argument->value();
    const SignatureInput *input = program.input(value);
    return value.empty() || makesConstant(operatorOfName(value)) ||
           (input && input->kind != SignatureInput::Parameter);
  }
  bool isAmbiguous = false;
  for (const std::string &value : call.values) {
    if (std::optional<unsigned> parameter = parameterOf(value))
      isAmbiguous |= !is_contained(readBy.lookup(&call), *parameter) ||
                     builder.nameOf(*parameter) == use.tensor->name();
    else if (!program.isThere(value) && !makesConstant(operatorOfName(value)))
      isAmbiguous |= !isExplained(call, value) && unmatched(call).empty();
  }
  return !isAmbiguous;
}

void Accountant::checkInitializer(const InitializerUse &use) {
  if (!isFloatTensor(*use.tensor) || claims.count({use.node, use.operand}))
    return;
  const std::string &name = use.tensor->name();
  std::string which = "initializer '" + name + "'";
  const Call *call = program.callOf(*use.node);
  std::vector<std::string> from = program.foldedParameters(name);
  if (!from.empty()) {
    std::string list = join(
        map_range(from,
                  [](const std::string &each) { return "'" + each + "'"; }),
        ", ");
    doubt(*use.node, from,
          which + " was computed by the exporter from parameter" +
              (from.size() > 1 ? "s " : " ") + list +
              ", and would not follow " + (from.size() > 1 ? "them" : "it") +
              " in training");
    return;
  }
  std::optional<unsigned> sameName = builder.find(name);
  if (sameName) {
    if (!call || !isMeantBy(*call, use))
      doubt(*use.node, {builder.nameOf(*sameName).str()},
            "nothing tells whether operand " + std::to_string(use.operand) +
                " is parameter '" + builder.nameOf(*sameName).str() +
                "' or a constant of equal value that the exporter merged "
                "with it");
    return;
  }
  // What an exporter computed it says, since onnxscript 0.5; a value that is
  // named after a call and of which nothing is said may have been a
  // parameter's.
  if (call && !program.foldedFrom(name) && call->takes(name) &&
      !makesConstant(operatorOfName(name)))
    doubt(*use.node, {},
          which + " stands for a call that is gone, and nothing tells what it "
                  "was computed from");
}

//===-- Parameters that are gone ------------------------------------------===//

void Accountant::checkParameters(const Call &call) {
  if (makesConstant(call.text.op))
    return;
  for (const std::string &value : call.values) {
    std::optional<unsigned> parameter = parameterOf(value);
    if (!parameter || is_contained(readBy.lookup(&call), *parameter))
      continue;
    // Of `type_as`, `expand_as` and the like only the first counts.
    bool isModel = StringRef(call.text.op).ends_with("_as") &&
                   call.text.arguments.size() > 1 &&
                   call.text.arguments[1].value() == value;
    // Equal nodes of two calls are one, and carry the first one's call.
    bool isShared = any_of(call.operands, [&](const std::string &operand) {
      const onnx::NodeProto *maker = program.maker(operand);
      const Call *from = maker ? program.callOf(*maker) : nullptr;
      return from && from != &call && from->takes(value);
    });
    // Its own use is doubted already where it is merged or folded.
    bool isDoubted = any_of(doubts, [&](const Doubt &each) {
      return program.callOf(*each.node) == &call &&
             is_contained(each.parameters, builder.nameOf(*parameter).str());
    });
    if (isModel || isShared || isDoubted)
      continue;
    doubt(*call.nodes.front(), {builder.nameOf(*parameter).str()},
          "parameter '" + builder.nameOf(*parameter).str() +
              "' is an argument of the traced call '" + call.text.result +
              "' (" + call.text.op +
              "), and no operand of its nodes is it: the exporter folded it "
              "into a constant");
  }
}

/// The value of a tensor of one f32, or nothing.
static std::optional<float> scalarOf(const OnnxFile &file,
                                     const onnx::TensorProto &tensor) {
  ArrayRef<char> data = file.payload(tensor).data;
  if (tensor.data_type() != onnx::TensorProto::FLOAT ||
      tensor.dims_size() != 0 || data.size() != sizeof(float))
    return std::nullopt;
  float value;
  std::memcpy(&value, data.data(), sizeof(float));
  return value;
}

/// A parameter of one number with which `op` does nothing today: the optimizer
/// drops `x * p` where p is 1. Empty if there is none.
std::string Accountant::unitScalar(StringRef op) const {
  if (op != "mul" && op != "div")
    return {};
  for (const auto &[name, who] : owners) {
    const onnx::TensorProto *tensor = file.findInitializer(name);
    std::optional<float> value = scalarOf(file, *tensor);
    // The optimizer's own tolerance.
    if (value && std::abs(*value - 1) < 1.1e-5)
      return builder.nameOf(who.front()).str();
  }
  return {};
}

//===-- Calls that are gone -----------------------------------------------===//

/// The initializer of equal value that the exporter put in the place of one
/// computed from something else; empty if there is none. Values that are not
/// all one are equal because they were computed alike.
std::string Accountant::mergedWith(const Call &call, StringRef gone) const {
  for (const onnx::NodeProto *node : call.nodes)
    for (int i = 0; i < node->input_size(); ++i) {
      const std::string &name = node->input(i);
      const onnx::TensorProto *tensor = file.findInitializer(name);
      if (!tensor || !isFloatTensor(*tensor) || !isUniform(file, *tensor) ||
          !owners.lookup(name).empty() ||
          operatorOfName(name) == operatorOfName(gone))
        continue;
      // A number may be a literal of the call as well, but where its place is
      // known.
      const TracedArgument *argument = elementwiseArgument(call.text, *node, i);
      if (argument ? argument->value() == gone : !isSingleElement(*tensor))
        return name;
    }
  return {};
}

/// Whether an operator does more than to move elements.
static bool computes(StringRef op) {
  return !StringSwitch<bool>(op)
              .Cases({"view",       "_unsafe_view", "reshape",   "expand",
                      "slice",      "select",       "unsqueeze", "squeeze",
                      "permute",    "transpose",    "t",         "numpy_t",
                      "contiguous", "getitem",      "type_as",   "_to_copy",
                      "alias",      "clone",        "flatten",   "index"},
                     true)
              .Default(false);
}

/// Whether a node of the call does the work of several: of what it was made,
/// calls are gone and nothing is lost.
static bool isFused(const Call &call) {
  return any_of(call.nodes, [](const onnx::NodeProto *node) {
    return StringSwitch<bool>(node->op_type())
        .Cases({"RMSNormalization", "RotaryEmbedding", "Attention",
                "LayerNormalization", "Gelu"},
               true)
        .Default(false);
  });
}

bool Accountant::dependsOnParameter(StringRef value) const {
  SmallVector<const onnx::NodeProto *> work;
  llvm::DenseSet<const onnx::NodeProto *> seen;
  auto visit = [&](StringRef name) {
    const onnx::NodeProto *maker = program.maker(name);
    if (maker && seen.insert(maker).second)
      work.push_back(maker);
  };
  visit(value);
  while (!work.empty()) {
    const onnx::NodeProto *node = work.pop_back_val();
    for (int i = 0; i < node->input_size(); ++i) {
      if (claims.count({node, unsigned(i)}))
        return true;
      visit(node->input(i));
    }
  }
  return false;
}

bool Accountant::findDifferences() const {
  for (const auto &[name, who] : owners)
    if (who.size() > 1)
      return true;
  for (const SignatureInput &input : program.signature())
    if (input.kind == SignatureInput::Buffer &&
        !file.findInitializer(input.target) &&
        any_of(program.calls(),
               [&](const Call &call) { return call.takes(input.placeholder); }))
      return true;
  return any_of(file.graph().node(), [&](const onnx::NodeProto &node) {
    return drawsRandomNumbers(node, file) || speaksOfDetaching(node);
  });
}

/// Whether a call that took the value is gone; true where the program does not
/// say how many there were.
bool Accountant::hasLostUser(StringRef value) const {
  const onnx::NodeProto *maker = program.maker(value);
  const Call *from = maker ? program.callOf(*maker) : nullptr;
  if (!from || !from->text.users)
    return true;
  unsigned users = count_if(program.calls(), [&](const Call &each) {
    return each.takes(from->text.result);
  });
  return users < *from->text.users;
}

void Accountant::checkGone(const Call &call) {
  SmallVector<StringRef> left = unmatched(call);
  const onnx::NodeProto &node = *call.nodes.front();
  for (const std::string &value : call.values) {
    if (program.isThere(value) || isExplained(call, value))
      continue;
    StringRef op = operatorOfName(value);
    std::string what = "argument '" + value + "' of the traced call '" +
                       call.text.result + "' (" + call.text.op + ")";
    bool isQuotedDetach =
        speaksOfDetaching(node) || any_of(left, [&](StringRef operand) {
          const onnx::NodeProto *maker = program.maker(operand);
          return maker && speaksOfDetaching(*maker);
        });
    if (op == "detach" || op == "detach_" ||
        ((op == "clone" || op == "alias") && isQuotedDetach)) {
      doubt(node, {}, what + " stopped a gradient, and the exporter dropped it",
            Doubt::Meaning);
      continue;
    }
    if (speaksOfFunction(node)) {
      doubt(node, {},
            what +
                " may have been made by the forward of an autograd function, "
                "whose backward the file does not hold",
            Doubt::Meaning);
      continue;
    }
    auto draws = [&](StringRef operand) {
      const onnx::NodeProto *maker = program.maker(operand);
      return maker && drawsRandomNumbers(*maker, file);
    };
    if (any_of(call.operands, draws)) {
      doubt(node, {},
            what + " is gone where random numbers were drawn: the exporter "
                   "made one draw of two",
            Doubt::Meaning);
      continue;
    }
    // What stands for the call that is gone was its operand, or is equal to it;
    // one value may stand for two arguments.
    SmallVector<StringRef> standing = left;
    if (left.empty())
      append_range(standing, call.operands);
    bool isDropped = false, isDroppedFloat = false;
    for (StringRef operand : standing)
      if (hasLostUser(operand)) {
        isDropped = true;
        isDroppedFloat |=
            program.isFloat(operand) && !file.findInitializer(operand);
      }
    if ((op == "add" || op == "sub") && isDroppedFloat) {
      doubt(node, {},
            what + " is gone: the exporter drops what adds less than 1e-8, and "
                   "with it what keeps roots and quotients finite",
            Doubt::Meaning);
      continue;
    }
    if (std::string name = isDropped ? unitScalar(op) : ""; !name.empty()) {
      doubt(node, {name},
            what + " is gone: it may have computed with parameter '" + name +
                "', which the exporter drops while it changes nothing");
      continue;
    }
    // Equal nodes are merged, and so are those of equal parameters.
    size_t before = doubts.size();
    for (StringRef operand : left) {
      const onnx::NodeProto *maker = program.maker(operand);
      const Call *from = maker ? program.callOf(*maker) : nullptr;
      if (!from || operatorOfName(from->text.result) != op)
        continue;
      for (const std::string &argument : from->values)
        if (std::optional<unsigned> parameter = parameterOf(argument);
            parameter && isMerged(*parameter))
          doubt(node, {builder.nameOf(*parameter).str()},
                what + " is gone: the exporter merged it with '" +
                    from->text.result +
                    "', which may have been a call with "
                    "another parameter equal to '" +
                    builder.nameOf(*parameter).str() + "'");
    }
    // A computation that is gone was made one with an equal one. What fed it
    // may have been another: a detached value, an equal parameter, another
    // draw.
    if (doubts.size() == before && mayDiffer && !left.empty() && computes(op) &&
        !isFused(call) && any_of(left, [&](StringRef operand) {
          const onnx::NodeProto *maker = program.maker(operand);
          const Call *from = maker ? program.callOf(*maker) : nullptr;
          return from && operatorOfName(from->text.result) == op &&
                 dependsOnParameter(operand);
        }))
      doubt(node, {},
            what + " was merged with an equal call, and the file, in which "
                   "gradients stop, numbers are drawn or inputs were merged, "
                   "does not tell whether they had the same arguments",
            Doubt::Meaning);
    if (!left.empty() || makesConstant(op))
      continue;
    if (std::string with = mergedWith(call, value); !with.empty())
      doubt(node, {},
            what + " was merged with initializer '" + with +
                "', and nothing tells what it was computed from");
  }
}

void Accountant::run() {
  uses = initializerUses(file);
  for (unsigned i = 0; i < builder.size(); ++i)
    builder.forEachClaim(i, [&](const InitializerUse &use) {
      claims[{use.node, use.operand}] = i;
      if (const Call *call = program.callOf(*use.node))
        readBy[call].push_back(i);
      SmallVector<unsigned> &who = owners[use.tensor->name()];
      if (!is_contained(who, i))
        who.push_back(i);
    });
  builder.forEachRestored([&](const onnx::NodeProto &node, unsigned parameter) {
    if (const Call *call = program.callOf(node))
      readBy[call].push_back(parameter);
  });
  if (!program.isOptimized())
    return;
  mayDiffer = findDifferences();
  for (const InitializerUse &use : uses)
    checkInitializer(use);
  for (const Call &call : program.calls()) {
    checkParameters(call);
    checkGone(call);
  }
  checkOutputs();
}

/// An output is a consumer, too: what it was may be gone.
void Accountant::checkOutputs() {
  for (auto [output, wanted] :
       llvm::zip(file.graph().output(), program.outputs())) {
    const onnx::NodeProto *maker = program.maker(output.name());
    const Call *from = maker ? program.callOf(*maker) : nullptr;
    if (from && !program.isThere(wanted) && from->text.result != wanted)
      doubt(*maker, {},
            "output '" + output.name() + "' was the traced call '" + wanted +
                "', which is gone: what it did to '" + from->text.result +
                "' was folded or dropped",
            Doubt::Meaning);
  }
}

std::vector<Doubt> accountForCalls(const TracedProgram &program,
                                   const ParameterBuilder &builder) {
  std::vector<Doubt> doubts;
  Accountant(program, builder, doubts).run();
  checkCallMeaning(program, builder, doubts);
  return doubts;
}

} // namespace accel::onnxio
