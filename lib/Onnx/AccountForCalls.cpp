// Accounting for initializers, and for the parameters that calls take. For what
// is gone altogether: AccountForGoneCalls.cpp.
#include "AccountForCalls.h"
#include "Accountant.h"
#include "CallMeaning.h"
#include "OperatorKinds.h"
#include "ParameterRoles.h"

using namespace llvm;

namespace accel::onnxio {

std::optional<unsigned> Accountant::parameterOf(StringRef placeholder) const {
  const SignatureInput *input = program.input(placeholder);
  return input ? builder.find(input->target) : std::nullopt;
}

/// Whether a value inside `from` is one that `call` made of the same arguments,
/// too: their equal nodes are one.
bool Accountant::isSharedStep(const Call &from, StringRef value,
                              const Call &call) const {
  if (!from.reads(value))
    return false;
  SmallVector<StringRef> work{value};
  while (!work.empty()) {
    StringRef each = work.pop_back_val();
    const onnx::NodeProto *maker = program.maker(each);
    const Call *source = maker ? program.callOf(*maker) : nullptr;
    if (source == &from) {
      append_range(work, maker->input());
      continue;
    }
    StringRef taken =
        source ? StringRef(source->text.result) : program.placeholder(each);
    if (!taken.empty() && !call.takes(taken))
      return false;
    if (any_of(owners.lookup(each), [&](unsigned parameter) {
          return none_of(call.values, [&](const std::string &argument) {
            return parameterOf(argument) == parameter;
          });
        }))
      return false;
  }
  return true;
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
    if (!from ||
        (!call.takes(from->text.result) && !isSharedStep(*from, operand, call)))
      found.push_back(operand);
  }
  return found;
}

/// Whether an initializer that the call reads is the value that is gone, or was
/// computed from it.
bool Accountant::isExplained(const Call &call, StringRef gone) const {
  return any_of(call.operands, [&](const std::string &operand) {
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
    return value.empty() || makesConstant(operatorOfName(value)) || input;
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
  if (!isFloatTensor(*use.tensor) ||
      dependence.isClaimed(*use.node, use.operand))
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
  // Of what dropout makes of a constant the optimizer keeps one draw. FX takes
  // the values out of what has several.
  if (const std::vector<std::string> *values = program.foldedFrom(name);
      values && values->size() == 3 && operatorOfName(name) == "getitem") {
    doubt(*use.node, {},
          which + " may be one draw of random numbers, of which the exporter "
                  "made a constant",
          Doubt::Meaning);
    return;
  }
  std::optional<unsigned> sameName = builder.find(name);
  if (sameName) {
    // Without a call it would be claimed by its name.
    if (!isMeantBy(*call, use))
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
    const TracedArgument *second = call.text.argument(1, "");
    bool isModel = StringRef(call.text.op).ends_with("_as") && second &&
                   second->value() == value;
    // Equal nodes of two calls are one, and carry the first one's call.
    bool isShared = any_of(call.operands, [&](const std::string &operand) {
      const onnx::NodeProto *maker = program.maker(operand);
      const Call *from = maker ? program.callOf(*maker) : nullptr;
      return from && from->takes(value);
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

void Accountant::run() {
  for (unsigned i = 0; i < builder.size(); ++i)
    builder.forEachClaim(i, [&](const InitializerUse &use) {
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
  isDecomposed = none_of(program.calls(), [](const Call &call) {
    return isComposite(call.text.op);
  });
  for (const Call &call : program.calls())
    for (const std::string &value : call.values)
      ++usersLeft[value];
  for (const InitializerUse &use : initializerUses(file))
    checkInitializer(use);
  for (const Call &call : program.calls()) {
    checkParameters(call);
    checkGone(call);
  }
  checkOutputs();
  warnOfDropped();
}

std::vector<Doubt> accountForCalls(const TracedProgram &program,
                                   const ParameterBuilder &builder) {
  std::vector<Doubt> doubts;
  Accountant(program, builder, doubts).run();
  checkCallMeaning(program, builder, doubts);
  return doubts;
}

} // namespace accel::onnxio
