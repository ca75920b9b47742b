// Accounting for arguments and outputs whose calls are gone: eliminated because
// they changed no value, or merged with equal ones.
#include "Accountant.h"
#include "CallFrames.h"
#include "CallMeaning.h"
#include "ParameterRoles.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>
#include <cstring>

using namespace llvm;

namespace accel::onnxio {

bool Accountant::isMerged(unsigned parameter) const {
  bool merged = false;
  builder.forEachClaim(parameter, [&](const InitializerUse &use) {
    merged |= owners.lookup(use.tensor->name()).size() > 1;
  });
  return merged;
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
                 dependence.reaches(operand);
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

} // namespace accel::onnxio
