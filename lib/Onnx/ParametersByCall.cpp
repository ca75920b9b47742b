// Identification of parameters by the exporter's metadata: the signature lists
// them, the traced call of each node names those it takes. An initializer is a
// parameter at a use, never as such: the optimizer merges equal ones and folds
// what it can. Rules, each measured on exports of torch 2.6 and 2.13:
// - in a file that no optimizer touched an initializer is what its name says;
// - else a use belongs to the argument that the table of roles, or the place of
//   an elementwise operand, says; where neither does, to that of the same name;
// - what was folded from one parameter that the file still holds is computed
//   from it again, where its value shows how (RestoreFolded.h) and the call
//   takes that and nothing equal to it; of one that is nowhere else it is
//   undone (UndoFolds.cpp);
// - a parameter that no call names is another name of one that is used
//   (TieParameters.h), or was folded away;
// - a bias argument whose operand is missing was zero and removed;
// - an initializer claimed by several parameters was merged.
// What the rules leave open is refused in training: AccountForCalls.h.
#include "CallFrames.h"
#include "NodeInfo.h"
#include "ParameterBuilder.h"
#include "ParameterRoles.h"
#include "RestoreFolded.h"
#include "TieParameters.h"
#include "TracedProgram.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace mlir;

namespace accel::onnxio {

namespace {
class Identifier {
public:
  Identifier(const TracedProgram &program, ParameterBuilder &builder)
      : program(program), file(program.file), builder(builder) {}

  void run(std::vector<std::string> &notes);

private:
  void identifyUse(const InitializerUse &use);
  bool identifyByPlace(const Call &call, const InitializerUse &use,
                       const std::string &where);
  void identifyByName(const Call &call, const InitializerUse &use,
                      const std::string &where);
  void restoreDerived(const Call &call, const InitializerUse &use,
                      const TracedArgument *argument);
  bool isComputedHere(const Call &call, const TracedArgument *argument,
                      const onnx::TensorProto &tensor, unsigned source) const;
  bool isLost(const SignatureInput &input) const {
    return input.kind != SignatureInput::User &&
           !file.findInitializer(input.target);
  }
  bool isMadeHere(const InitializerUse &use, StringRef parameter) const;
  bool isViewOfAnother(const onnx::TensorProto &tensor,
                       const FoldedSteps &allowed) const;
  bool restoreOriginal(const Call &call, const InitializerUse &use,
                       const onnx::TensorProto &original, unsigned parameter);
  void restoreFolded(std::vector<std::string> &notes);
  void restoreBiases();
  llvm::StringSet<> foldedNames() const;
  void noteLookups(std::vector<std::string> &notes) const;
  std::optional<unsigned> parameterOf(const TracedArgument &argument) const {
    return parameterOf(argument.value());
  }
  std::optional<unsigned> parameterOf(StringRef placeholder) const {
    auto it = byPlaceholder.find(placeholder);
    return it == byPlaceholder.end() ? std::nullopt
                                     : std::optional<unsigned>(it->second);
  }

  const TracedProgram &program;
  const OnnxFile &file;
  ParameterBuilder &builder;
  llvm::StringMap<unsigned> byPlaceholder;
  std::vector<InitializerUse> uses;
  llvm::StringMap<std::vector<const InitializerUse *>> usesByLine;
  /// Uses of what was computed from parameters that are nowhere as they are.
  struct FoldedUse {
    const Call *call;
    const InitializerUse *use;
    unsigned parameter;
  };
  std::vector<FoldedUse> foldedUses;
  /// Tables of which a module looked rows up once, in the order of their uses.
  std::vector<std::string> lookedUp;
  /// Parameters that some call in the graph names.
  SmallVector<bool> named;
};
} // namespace

/// How many operands of the call's nodes are the tensor.
static unsigned countUses(const Call &call, const onnx::TensorProto &tensor) {
  unsigned count = 0;
  for (const onnx::NodeProto *node : call.nodes)
    count += llvm::count(node->input(), tensor.name());
  return count;
}

/// Decides which parameter, if any, one operand is.
void Identifier::identifyUse(const InitializerUse &use) {
  const onnx::TensorProto &tensor = *use.tensor;
  std::optional<unsigned> sameName = builder.find(tensor.name());
  const Call *call = program.callOf(*use.node);
  std::string where = "operand " + std::to_string(use.operand) + " of node '" +
                      use.node->name() + "' (" + use.node->op_type() + ")";
  if (!call || !program.isOptimized() || !isFloatTensor(tensor)) {
    if (sameName)
      builder.claim(*sameName, use, identityPermutation(tensor.dims_size()),
                    "initializer of that name, " + where);
    else if (call && isFloatTensor(tensor))
      identifyByPlace(*call, use, where);
    return;
  }
  if (!identifyByPlace(*call, use, where))
    identifyByName(*call, use, where);
}

/// By the argument that stands where the operand does. True where that settles
/// what the operand is: this parameter, or none.
bool Identifier::identifyByPlace(const Call &call, const InitializerUse &use,
                                 const std::string &where) {
  const std::vector<std::string> *folded =
      program.foldedFrom(use.tensor->name());
  std::string why = where + " is this argument of the traced call '" +
                    call.text.result + "' (" + call.text.op + ")";
  unsigned rank = use.tensor->dims_size();
  const TracedArgument *argument = nullptr;
  if (std::optional<OperandRole> role =
          operandRole(call.text, *use.node, use.operand, rank)) {
    argument = role->argument;
    // What was computed from more than the parameter is not the parameter.
    if (std::optional<unsigned> parameter = parameterOf(*argument);
        parameter && (!folded || folded->size() == 1)) {
      builder.claim(*parameter, use, role->permutation, why);
      return true;
    }
  } else if ((argument =
                  elementwiseArgument(call.text, *use.node, use.operand))) {
    if (std::optional<unsigned> parameter = parameterOf(*argument);
        parameter && !folded) {
      builder.claim(*parameter, use, identityPermutation(rank), why);
      return true;
    }
  }
  if (!argument)
    return false;
  // A literal, a buffer or a call that is there is what it is.
  if (parameterOf(*argument) ||
      (!argument->value().empty() && !program.isThere(argument->value())))
    restoreDerived(call, use, argument);
  return true;
}

void Identifier::identifyByName(const Call &call, const InitializerUse &use,
                                const std::string &where) {
  const onnx::TensorProto &tensor = *use.tensor;
  SmallVector<int64_t, 4> same = identityPermutation(tensor.dims_size());
  SmallVector<unsigned> candidates;
  for (const std::string &value : call.values)
    if (std::optional<unsigned> parameter = parameterOf(value))
      candidates.push_back(*parameter);
  std::optional<unsigned> sameName = builder.find(tensor.name());
  // Where several operands are one tensor, some may be what was merged with the
  // parameter: a literal, or a call that is gone.
  bool isAmbiguous = countUses(call, tensor) > 1 &&
                     (isSingleElement(tensor) ||
                      any_of(call.values, [&](const std::string &value) {
                        return !program.isThere(value);
                      }));
  // So may a buffer or constant that is in the file under no name of its own.
  isAmbiguous |= any_of(call.values, [&](const std::string &value) {
    const SignatureInput *input = program.input(value);
    return input && input->kind != SignatureInput::Parameter && isLost(*input);
  });
  if (sameName && is_contained(candidates, *sameName)) {
    if (!isAmbiguous)
      builder.claim(*sameName, use, same, "initializer of that name, " + where);
    return;
  }
  // A parameter without an initializer of its name was merged with another
  // input of equal value.
  llvm::erase_if(candidates, [&](unsigned parameter) {
    return file.findInitializer(builder.nameOf(parameter));
  });
  if (candidates.size() == 1 && !isKnownCall(call.text) &&
      program.target(tensor.name()) && countUses(call, tensor) == 1) {
    builder.claim(candidates.front(), use, same,
                  where + " is this argument of the traced call '" +
                      call.text.result + "' (" + call.text.op + ")");
    return;
  }
  restoreDerived(call, use, nullptr);
}

/// Whether the tensor, which was computed from `source`, is the argument, or
/// was computed within the call from it; null: any of the call's arguments.
/// What is equal to it and was computed from something else is merged with it.
bool Identifier::isComputedHere(const Call &call,
                                const TracedArgument *argument,
                                const onnx::TensorProto &tensor,
                                unsigned source) const {
  const std::vector<std::string> &from = *program.foldedFrom(tensor.name());
  auto isSource = [&](StringRef value) {
    return value == tensor.name() || parameterOf(value) == source ||
           is_contained(from, value.str());
  };
  if (argument)
    return isSource(argument->value());
  // Of several operands each may be another one's.
  return any_of(call.values, isSource) &&
         (countUses(call, tensor) == 1 ||
          all_of(call.values, [&](const std::string &value) {
            return program.isThere(value) || isSource(value);
          }));
}

/// Whether another of the program's tensors, seen otherwise, is equal: then
/// what is gone may have seen that one.
bool Identifier::isViewOfAnother(const onnx::TensorProto &tensor,
                                 const FoldedSteps &allowed) const {
  return any_of(program.signature(), [&](const SignatureInput &input) {
    const onnx::TensorProto *other = input.target == tensor.name()
                                         ? nullptr
                                         : file.findInitializer(input.target);
    return other && mayDerive(file, *other, tensor, allowed);
  });
}

/// Whether the optimizer made the tensor of a value within a call.
static bool isInternal(const onnx::TensorProto &tensor) {
  return StringRef(tensor.name()).starts_with("val_");
}

/// The line that made the node, as a key; empty where the file does not say.
static std::string lineOf(const onnx::NodeProto &node) {
  std::vector<SourceLine> frames = stackFrames(node);
  return frames.empty()
             ? ""
             : frames.back().file + ":" + std::to_string(frames.back().line);
}

/// Whether rows of a table may have been looked up for the tensor: by a module,
/// whose line is not the user's, or, `here`, on the line that uses it.
static bool isLookup(const TracedProgram &program,
                     const onnx::TensorProto &tensor, bool here) {
  auto isOne = [&](StringRef name) {
    StringRef op = operatorOfName(name);
    return op == "embedding" ||
           (here && (op == "index" || op == "index_select"));
  };
  return isOne(tensor.name()) ||
         any_of(*program.foldedFrom(tensor.name()),
                [&](const std::string &each) {
                  return !program.target(each) && isOne(each);
                });
}

/// Whether the line that made the node names the parameter as often as it uses
/// tensors that are made of it: calls that are gone may have been made on
/// another line, in a region without gradients.
bool Identifier::isMadeHere(const InitializerUse &use,
                            StringRef parameter) const {
  llvm::StringSet<> tensors;
  for (const InitializerUse *each : usesByLine.lookup(lineOf(*use.node))) {
    const std::string &name = each->tensor->name();
    if (name == parameter ||
        is_contained(program.foldedParameters(name), parameter))
      tensors.insert(name);
  }
  return countMentions(*use.node, parameter) >= tensors.size();
}

/// What an optimizer computed from a parameter that is still there.
void Identifier::restoreDerived(const Call &call, const InitializerUse &use,
                                const TracedArgument *argument) {
  const onnx::TensorProto &tensor = *use.tensor;
  std::vector<std::string> sources = program.foldedParameters(tensor.name());
  // Nothing was computed: what is gone passed the parameter on as it was, or
  // an input of equal value that was merged with it.
  bool isItself = sources.empty();
  if (isItself && !any_of(program.signature(), [&](const SignatureInput &each) {
        return isLost(each);
      }))
    sources.push_back(tensor.name());
  if (sources.size() != 1)
    return;
  // Of equal parameters one initializer is left, under the name of one.
  if (any_of(program.signature(),
             [&](const SignatureInput &input) {
               return input.kind == SignatureInput::Parameter &&
                      !file.findInitializer(input.target);
             }) &&
      isUniform(file, tensor))
    return;
  const onnx::TensorProto *source = file.findInitializer(sources.front());
  std::optional<unsigned> parameter = builder.find(sources.front());
  if (!parameter ||
      (!isItself && !isComputedHere(call, argument, tensor, *parameter)))
    return;
  if (!source) {
    foldedUses.push_back({&call, &use, *parameter});
    return;
  }
  if (file.isOriginal(*source)) {
    if (!restoreOriginal(call, use, *source, *parameter))
      foldedUses.push_back({&call, &use, *parameter});
    return;
  }
  std::optional<FoldedSteps> allowed = stepsOfNames(program, call, tensor);
  if (!allowed || (isItself && isViewOfAnother(tensor, *allowed)) ||
      !(isInternal(tensor) || lineOf(*use.node).empty() ||
        isMadeHere(use, sources.front())))
    return;
  if (std::optional<std::vector<ParameterStep>> steps =
          deriveFrom(file, *source, tensor, *allowed))
    builder.derive(*parameter, use, std::move(*steps));
}

/// What an optimizer computed from a parameter that --original-weights holds:
/// steps that make it of that bit by bit, and no others.
bool Identifier::restoreOriginal(const Call &call, const InitializerUse &use,
                                 const onnx::TensorProto &original,
                                 unsigned parameter) {
  const onnx::TensorProto &tensor = *use.tensor;
  const std::string &name = original.name();
  std::optional<std::vector<ParameterStep>> steps;
  bool isWithinCall =
      isInternal(tensor) &&
      all_of(*program.foldedFrom(tensor.name()), [&](const std::string &each) {
        return program.target(each) || StringRef(each).starts_with("val_");
      });
  bool isHere = isWithinCall || isMadeHere(use, name);
  if (isHere) {
    if (std::optional<FoldedSteps> allowed =
            stepsOfNames(program, call, tensor))
      steps = deriveFrom(file, original, tensor, *allowed);
    if (std::optional<FoldedParameter> undone =
            steps ? std::nullopt : undoFolds(program, *use.node, tensor, name);
        undone && isFoldedBy(file, original, tensor, undone->steps))
      steps = undone->steps;
  }
  if (!steps && isLookup(program, tensor, isHere)) {
    steps = deriveRows(file, original, tensor);
    if (steps && !isHere && !is_contained(lookedUp, name))
      lookedUp.push_back(name);
  }
  if (!steps)
    return false;
  builder.derive(parameter, use, std::move(*steps));
  return true;
}

/// What was computed from parameters that the file holds under no name of their
/// own: from one that is transposed elsewhere it is computed again, and of one
/// that is nowhere else it is undone.
void Identifier::restoreFolded(std::vector<std::string> &notes) {
  for (const auto &[call, use, parameter] : foldedUses) {
    const onnx::TensorProto &tensor = *use->tensor;
    std::string name = builder.nameOf(parameter).str();
    SmallVector<int64_t, 4> permutation;
    if (const InitializerUse *held =
            builder.firstClaim(parameter, permutation)) {
      std::optional<FoldedSteps> allowed = stepsOfNames(program, *call, tensor);
      std::optional<std::vector<ParameterStep>> steps =
          allowed && (isInternal(tensor) || isMadeHere(*use, name))
              ? deriveFrom(file, *held->tensor, tensor, *allowed)
              : std::nullopt;
      if (!steps)
        continue;
      if (!is_sorted(permutation))
        steps->insert(steps->begin(), {ParameterStep::Permute, permutation});
      builder.derive(parameter, *use, std::move(*steps));
      continue;
    }
    std::optional<FoldedParameter> undone;
    if (!file.findInitializer(name) && isMadeHere(*use, name))
      undone = undoFolds(program, *use->node, tensor, name);
    if (undone &&
        builder.unfold(parameter, *use, *undone,
                       "initializer '" + tensor.name() +
                           "' was computed from it alone, which is "
                           "undone") &&
        undone->isShapeGuessed)
      notes.push_back("the file does not hold the shape of parameter '" + name +
                      "', of which it has '" + tensor.name() +
                      "' alone: it is saved as " + printShape(undone->shape) +
                      "; export with acc-export if it is of another");
  }
}

/// The length of the bias that `node` would take: its result's last dimension,
/// or a convolution's channels.
static SmallVector<int64_t, 1> biasShape(const OnnxFile &file,
                                         const onnx::NodeProto &node) {
  if (node.input_size() < 2)
    return {};
  StringRef op = node.op_type();
  if (const onnx::TensorProto *weight = file.findInitializer(node.input(1))) {
    auto isSet = [&](StringRef name) {
      const onnx::AttributeProto *found = findAttribute(node, name);
      return found && found->i() != 0;
    };
    int rank = weight->dims_size();
    if (op == "Gemm" && rank == 2)
      return {weight->dims(isSet("transB") ? 0 : 1)};
    if (op == "MatMul" && rank == 2)
      return {weight->dims(1)};
    if (op == "Conv" && rank > 2)
      return {weight->dims(0)};
    if (op == "ConvTranspose" && rank > 2) {
      const onnx::AttributeProto *group = findAttribute(node, "group");
      return {weight->dims(1) * (group ? group->i() : 1)};
    }
    if (op == "LayerNormalization" && rank == 1)
      return {weight->dims(0)};
  }
  // The weight is computed: what shape inference wrote down may tell.
  for (const onnx::ValueInfoProto &value : file.graph().value_info()) {
    if (value.name() != node.output(0))
      continue;
    const onnx::TensorShapeProto &shape = value.type().tensor_type().shape();
    int channel = op.starts_with("Conv") ? 1 : shape.dim_size() - 1;
    if (channel >= 0 && channel < shape.dim_size() &&
        shape.dim(channel).has_dim_value())
      return {shape.dim(channel).dim_value()};
  }
  return {};
}

/// Bias arguments that no operand is: they were zero, and x + 0 is x.
void Identifier::restoreBiases() {
  llvm::StringMap<SmallVector<unsigned>> claimedInCall;
  for (unsigned i = 0; i < builder.size(); ++i)
    builder.forEachClaim(i, [&](const InitializerUse &use) {
      if (const Call *call = program.callOf(*use.node))
        claimedInCall[call->text.result].push_back(i);
    });
  for (const Call &call : program.calls())
    for (const onnx::NodeProto *node : call.nodes) {
      std::optional<BiasRole> role = biasRole(call.text, *node);
      if (!role)
        continue;
      std::optional<unsigned> parameter = parameterOf(*role->argument);
      if (!parameter ||
          is_contained(claimedInCall[call.text.result], *parameter))
        continue;
      if (role->operand >= 0 && role->operand < node->input_size() &&
          !node->input(role->operand).empty())
        continue;
      const onnx::TensorProto *weight =
          node->input_size() > 1 ? file.findInitializer(node->input(1))
                                 : nullptr;
      builder.restore(*parameter, *node, role->operand, biasShape(file, *node),
                      weight ? weight->data_type() : onnx::TensorProto::FLOAT,
                      "argument of the traced call '" + call.text.result +
                          "' (" + call.text.op + ") that node '" +
                          node->name() + "' (" + node->op_type() +
                          ") lacks: it was zero, and the exporter removed it");
      break;
    }
}

/// Parameters that something in the file was computed from.
llvm::StringSet<> Identifier::foldedNames() const {
  llvm::StringSet<> names;
  for (const InitializerUse &use : uses)
    for (const std::string &name : program.foldedParameters(use.tensor->name()))
      names.insert(name);
  return names;
}

/// What no file tells of lookups that a module made.
void Identifier::noteLookups(std::vector<std::string> &notes) const {
  for (const std::string &name : lookedUp)
    notes.push_back("rows of parameter '" + name +
                    "' that the exporter looked up are trained: if that was "
                    "under no_grad, or one of them is a padding_idx, export "
                    "with acc-export");
}

void Identifier::run(std::vector<std::string> &notes) {
  for (const SignatureInput &input : program.signature())
    if (input.kind == SignatureInput::Parameter)
      byPlaceholder.try_emplace(input.placeholder, builder.add(input.target));
  named.assign(builder.size(), false);
  for (const Call &call : program.calls())
    for (const std::string &value : call.values)
      if (std::optional<unsigned> parameter = parameterOf(value))
        named[*parameter] = true;
  uses = initializerUses(file);
  for (const InitializerUse &use : uses)
    usesByLine[lineOf(*use.node)].push_back(&use);
  for (const InitializerUse &use : uses)
    identifyUse(use);
  restoreFolded(notes);
  restoreBiases();
  tieUnnamedParameters(file, builder, named, foldedNames(), notes);
  noteLookups(notes);
}

void identifyByCall(const TracedProgram &program, ParameterBuilder &builder,
                    std::vector<std::string> &notes) {
  Identifier(program, builder).run(notes);
}

} // namespace accel::onnxio
