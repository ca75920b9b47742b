// Accounting for arguments and outputs whose calls are gone: eliminated because
// they changed no value, or merged with equal ones.
#include "Accountant.h"
#include "CallFrames.h"
#include "CallMeaning.h"
#include "OperatorKinds.h"
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
  ArrayRef<char> data = file.values(tensor);
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
      if (!tensor || !isFloatTensor(*tensor) || !owners.lookup(name).empty() ||
          operatorOfName(name) == operatorOfName(gone) ||
          !isUniform(file, *tensor))
        continue;
      // A number may be a literal of the call as well, but where its place is
      // known.
      const TracedArgument *argument = elementwiseArgument(call.text, *node, i);
      if (argument ? argument->value() == gone : !isSingleElement(*tensor))
        return name;
    }
  return {};
}

/// Whether a node of the call does the work of several: calls that are gone
/// went into it, and nothing is lost.
static bool isFused(const Call &call, StringRef gone) {
  return any_of(call.nodes, [&](const onnx::NodeProto *node) {
    return StringSwitch<bool>(node->op_type())
        .Cases({"RMSNormalization", "RotaryEmbedding", "Attention",
                "LayerNormalization", "Gelu"},
               true)
        .Case("MatMul", gone == "bmm" || gone == "matmul" || gone == "mm")
        .Default(false);
  });
}

const Call *Accountant::makerOf(StringRef value) const {
  const onnx::NodeProto *maker = program.maker(value);
  return maker ? program.callOf(*maker) : nullptr;
}

/// Whether a call that took the value is gone; true where the program does not
/// say how many there were. What is inside a call no other took.
bool Accountant::hasLostUser(StringRef value) const {
  const Call *from = makerOf(value);
  if (!from || !from->text.users)
    return true;
  return !from->reads(value) &&
         usersLeft.lookup(from->text.result) < *from->text.users;
}

/// The ONNX values that may stand where the call took the one that is gone: by
/// its place, or all that no other argument explains. One value may stand for
/// two arguments.
SmallVector<StringRef> Accountant::standing(const Call &call,
                                            StringRef gone) const {
  for (const onnx::NodeProto *node : call.nodes)
    for (int i = 0; i < node->input_size(); ++i)
      if (const TracedArgument *argument =
              elementwiseArgument(call.text, *node, i);
          argument && argument->value() == gone)
        return {node->input(i)};
  SmallVector<StringRef> found = unmatched(call);
  if (!found.empty())
    return found;
  // An initializer that is no argument as it is may be what is gone.
  for (const std::string &operand : call.operands)
    if (const onnx::TensorProto *tensor = file.findInitializer(operand);
        tensor && (isFloatTensor(*tensor) || takesIndices(call.text.op)) &&
        !call.takes(operand) && owners.lookup(operand).empty())
      return {};
  for (const std::string &operand : call.operands)
    if (const Call *from = makerOf(operand);
        !from || !isSharedStep(*from, operand, call))
      found.push_back(operand);
  return found;
}

bool Accountant::checkStopped(const Gone &gone) {
  bool isQuoted =
      speaksOfDetaching(gone.node) ||
      (gone.call && any_of(unmatched(*gone.call), [&](StringRef operand) {
         const onnx::NodeProto *maker = program.maker(operand);
         return maker && speaksOfDetaching(*maker);
       }));
  if (gone.op == "detach" || gone.op == "detach_" ||
      (isMove(gone.op) && isQuoted)) {
    doubt(gone.node, {},
          gone.what + " stopped a gradient, and the exporter dropped it",
          Doubt::Meaning);
    return true;
  }
  if (!speaksOfFunction(gone.node))
    return false;
  doubt(gone.node, {},
        gone.what +
            " may have been made by the forward of an autograd function, "
            "whose backward the file does not hold",
        Doubt::Meaning);
  return true;
}

bool Accountant::checkDraws(const Gone &gone) {
  if (!gone.call || none_of(gone.call->operands, [&](StringRef operand) {
        const onnx::NodeProto *maker = program.maker(operand);
        return maker && drawsRandomNumbers(*maker, file);
      }))
    return false;
  doubt(gone.node, {},
        gone.what + " is gone where random numbers were drawn: the exporter "
                    "made one draw of two",
        Doubt::Meaning);
  return true;
}

/// What the exporter drops because it changes no value today. True where all is
/// said of it.
bool Accountant::checkNeutral(const Gone &gone) {
  bool isDropped = false, isDroppedFloat = false;
  for (StringRef operand : gone.standing)
    if (hasLostUser(operand)) {
      isDropped = true;
      isDroppedFloat |=
          program.isFloat(operand) && !file.findInitializer(operand);
    }
  // Python's sum() begins with 0 + x, and goes on with additions.
  if (gone.op == "add" && gone.call && gone.call->text.op == "add" &&
      speaksOfSum(gone.node))
    return true;
  if ((gone.op == "add" || gone.op == "sub") && isDroppedFloat) {
    doubt(gone.node, {},
          gone.what +
              " is gone: the exporter drops what adds less than 1e-8, and "
              "with it what keeps roots and quotients finite",
          Doubt::Meaning);
    return true;
  }
  std::string name = isDropped ? unitScalar(gone.op) : "";
  if (name.empty())
    return false;
  doubt(gone.node, {name},
        gone.what + " is gone: it may have computed with parameter '" + name +
            "', which the exporter drops while it changes nothing");
  return true;
}

/// Equal nodes are merged, and so are those of equal parameters: what went into
/// the call that is gone may have been a detached value, or another parameter.
bool Accountant::checkMerged(const Gone &gone) {
  if (gone.call && isFused(*gone.call, gone.op))
    return false;
  for (StringRef operand : gone.standing) {
    if (!dependence.reaches(operand))
      continue;
    const Call *from = makerOf(operand);
    if (!from) {
      // A node of the optimizer's own stands for one value.
      StringRef first =
          stoodFor.try_emplace(operand, gone.value.str()).first->second;
      if (first == gone.value || operatorOfName(first) != gone.op)
        continue;
      doubt(gone.node, dependence.of(operand),
            gone.what + " was merged with '" + first.str() +
                "', an equal value, and nothing tells whether both were made "
                "of the same",
            Doubt::Meaning);
      return true;
    }
    bool isSame = operatorOfName(from->text.result) == gone.op;
    if (isSame)
      for (const std::string &argument : from->values)
        if (std::optional<unsigned> parameter = parameterOf(argument);
            parameter && isMerged(*parameter)) {
          doubt(gone.node, {builder.nameOf(*parameter).str()},
                gone.what + " is gone: the exporter merged it with '" +
                    from->text.result +
                    "', which may have been a call with "
                    "another parameter equal to '" +
                    builder.nameOf(*parameter).str() + "'");
          return true;
        }
    // What the optimizer drops took what stands in its place.
    if (hasLostUser(operand) && (!isSame || isMove(gone.op)))
      continue;
    doubt(gone.node, dependence.of(operand),
          gone.what + " was merged with '" + from->text.result +
              "', an equal value, and nothing tells whether both were made of "
              "the same: a gradient stopped on the way to one of them is lost",
          Doubt::Meaning);
    return true;
  }
  return false;
}

/// A copy or a view that was dropped may have been one of a detached value:
/// x.detach() on a line of its own leaves nothing else. A value that is taken
/// elsewhere, too, has reason to be detached.
bool Accountant::checkCopied(const Gone &gone) {
  if (!isMove(gone.op) || (gone.op == "alias" && !isDecomposed))
    return false;
  for (StringRef operand : gone.standing) {
    const Call *from = makerOf(operand);
    if (!from || !from->text.users || *from->text.users < 2 ||
        !hasLostUser(operand) || !dependence.reaches(operand))
      continue;
    doubt(gone.node, dependence.of(operand),
          gone.what + " is gone, and nothing tells whether it was made of '" +
              from->text.result +
              "', which has other uses, or of its detached value",
          Doubt::Meaning);
    return true;
  }
  return false;
}

/// Whatever else took the value in its place, and did something to it.
bool Accountant::checkDropped(const Gone &gone) {
  if (isMove(gone.op) || makesConstant(gone.op) || gone.op == "mul" ||
      gone.op == "div" || (gone.call && isFused(*gone.call, gone.op)))
    return false;
  for (StringRef operand : gone.standing) {
    const Call *from = makerOf(operand);
    if (!from || !dependence.reaches(operand))
      continue;
    doubt(gone.node, dependence.of(operand),
          gone.what + " is gone, and nothing tells what it did to '" +
              from->text.result + "'",
          Doubt::Meaning);
    return true;
  }
  return false;
}

/// A value that is gone beside an initializer.
void Accountant::checkConstant(const Gone &gone) {
  if (!gone.call || !unmatched(*gone.call).empty() || makesConstant(gone.op))
    return;
  if (std::string with = mergedWith(*gone.call, gone.value); !with.empty())
    doubt(gone.node, {},
          gone.what + " was merged with initializer '" + with +
              "', and nothing tells what it was computed from");
}

/// Whether an initializer is a parameter that is no argument of the call.
bool Accountant::isOwnedByOther(const Gone &gone, StringRef operand) const {
  return gone.call && any_of(owners.lookup(operand), [&](unsigned parameter) {
           return none_of(gone.call->values, [&](const std::string &value) {
             return parameterOf(value) == parameter;
           });
         });
}

void Accountant::check(const Gone &gone) {
  if (checkStopped(gone) || checkDraws(gone) || checkNeutral(gone) ||
      checkMerged(gone) || checkCopied(gone) || checkDropped(gone))
    return;
  checkConstant(gone);
  if (none_of(gone.standing,
              [&](StringRef operand) {
                return makerOf(operand) ? dependence.reaches(operand)
                                        : isOwnedByOther(gone, operand);
              }) ||
      !(isMove(gone.op) || gone.op == "mul" || gone.op == "div"))
    return;
  if (dropped.empty())
    firstDropped = &gone.node;
  if (!is_contained(dropped, gone.value))
    dropped.push_back(gone.value.str());
}

/// x.detach() on a line of its own, and then a copy or a view: neither leaves
/// more than the name of the second.
void Accountant::warnOfDropped() {
  if (dropped.empty())
    return;
  constexpr size_t most = 3;
  std::string names =
      join(map_range(ArrayRef(dropped).take_front(most),
                     [](const std::string &each) { return "'" + each + "'"; }),
           ", ");
  doubt(*firstDropped, {},
        "the exporter dropped " + std::to_string(dropped.size()) +
            (dropped.size() == 1 ? " call" : " calls") +
            " that changed nothing (" + names +
            (dropped.size() > most ? ", …" : "") +
            "), and would have dropped a detach() before one of them, or a "
            "factor within 1e-5 of 1, as silently",
        Doubt::Possible);
}

void Accountant::checkGone(const Call &call) {
  for (const std::string &value : call.values) {
    if (program.isThere(value) || isExplained(call, value))
      continue;
    check({&call, *call.nodes.front(), value, operatorOfName(value),
           "argument '" + value + "' of the traced call '" + call.text.result +
               "' (" + call.text.op + ")",
           standing(call, value)});
  }
}

/// An output is a consumer, too: what it was may be gone.
void Accountant::checkOutputs() {
  for (auto [output, wanted] :
       llvm::zip(file.graph().output(), program.outputs())) {
    const onnx::NodeProto *maker = program.maker(output.name());
    const Call *from = maker ? program.callOf(*maker) : nullptr;
    if (from && !program.isThere(wanted) && from->text.result != wanted)
      check({nullptr,
             *maker,
             wanted,
             operatorOfName(wanted),
             "the traced call '" + wanted + "' that is output '" +
                 output.name() + "'",
             {StringRef(output.name())}});
  }
}

} // namespace accel::onnxio
