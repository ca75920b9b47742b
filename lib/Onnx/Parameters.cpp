// Identification of parameters by the exporter's metadata: the signature lists
// them, the traced call of each node names those it takes. Rules, each measured
// on exports of torch 2.6 and 2.13:
// - a use belongs to the argument that the table of roles says; where the call
//   is not in the table, to the only candidate, or to that of the same name;
// - a parameter that no call names is another name of the one used at its
// module
//   path, or was folded away;
// - a bias argument whose operand is missing was zero and removed;
// - an initializer claimed by several parameters was merged.
#include "accel/Onnx/Parameters.h"
#include "DeclaredParameters.h"
#include "ParameterBuilder.h"
#include "ParameterRoles.h"
#include "accel/Onnx/NamePatterns.h"
#include "accel/Onnx/NodeInfo.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"

using namespace llvm;
using namespace mlir;

namespace accel::onnxio {

namespace {
class Identifier {
public:
  Identifier(const OnnxFile &file, ParameterBuilder &builder,
             ArrayRef<SignatureInput> signature)
      : file(file), builder(builder), signature(signature) {}

  void run(std::vector<std::string> &notes);

private:
  void readCalls(const onnx::GraphProto &graph);
  void identifyUse(const InitializerUse &use);
  void restoreBiases();
  void tieUnnamed(std::vector<std::string> &notes);
  std::optional<unsigned> parameterOf(const TracedArgument &argument) const;
  const TracedCall *callOf(const onnx::NodeProto &node) const {
    auto it = calls.find(&node);
    return it == calls.end() ? nullptr : &it->second;
  }

  const OnnxFile &file;
  ParameterBuilder &builder;
  ArrayRef<SignatureInput> signature;
  llvm::StringMap<unsigned> byPlaceholder;
  llvm::StringSet<> buffers;
  llvm::MapVector<const onnx::NodeProto *, TracedCall> calls;
  std::vector<InitializerUse> uses;
  /// Float initializers of rank 1 and more that nodes of one call use, by the
  /// call's result.
  llvm::StringMap<SmallVector<const onnx::TensorProto *, 2>> tensorsOfCall;
  /// Parameters that some call in the graph names.
  SmallVector<bool> named;
};
} // namespace

void Identifier::readCalls(const onnx::GraphProto &graph) {
  for (const onnx::NodeProto &node : graph.node()) {
    if (std::optional<TracedCall> call = tracedCall(node)) {
      for (const TracedArgument &argument : call->arguments)
        if (std::optional<unsigned> parameter = parameterOf(argument))
          named[*parameter] = true;
      calls[&node] = std::move(*call);
    }
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        readCalls(attribute.g());
      for (const onnx::GraphProto &inner : attribute.graphs())
        readCalls(inner);
    }
  }
}

std::optional<unsigned>
Identifier::parameterOf(const TracedArgument &argument) const {
  auto it = byPlaceholder.find(argument.value());
  if (it == byPlaceholder.end())
    return std::nullopt;
  return it->second;
}

static bool isElementwise(StringRef op) {
  return op == "Add" || op == "Sub" || op == "Mul" || op == "Div" ||
         op == "Pow" || op == "Max" || op == "Min";
}

/// Decides which parameter, if any, one operand is.
void Identifier::identifyUse(const InitializerUse &use) {
  const onnx::TensorProto &tensor = *use.tensor;
  unsigned rank = tensor.dims_size();
  std::optional<unsigned> sameName = builder.find(tensor.name());
  const TracedCall *call = callOf(*use.node);
  std::string where = "operand " + std::to_string(use.operand) + " of node '" +
                      use.node->name() + "' (" + use.node->op_type() + ")";
  if (!call) {
    if (sameName)
      builder.claim(*sameName, use, identityPermutation(rank),
                    "initializer of that name, " + where);
    return;
  }
  std::string why = where + " is this argument of the traced call '" +
                    call->result + "' (" + call->op + ")";
  if (isFloatTensor(tensor))
    if (std::optional<OperandRole> role =
            operandRole(*call, *use.node, use.operand, rank))
      if (std::optional<unsigned> parameter = parameterOf(*role->argument)) {
        builder.claim(*parameter, use, role->permutation, why);
        return;
      }

  SmallVector<unsigned> candidates;
  for (const TracedArgument &argument : call->arguments)
    if (std::optional<unsigned> parameter = parameterOf(argument))
      if (!is_contained(candidates, *parameter))
        candidates.push_back(*parameter);
  // The name alone decides where the call does not contradict it. A folded
  // batch norm keeps the convolution's name, but comes from the norm's call.
  if (sameName && (candidates.empty() ? !isKnownCall(*call)
                                      : is_contained(candidates, *sameName))) {
    builder.claim(*sameName, use, identityPermutation(rank),
                  "initializer of that name, " + where);
    return;
  }
  if (candidates.empty() || isKnownCall(*call) || !isFloatTensor(tensor))
    return;
  // Two arguments of one elementwise call stand where its operands do.
  if (isElementwise(use.node->op_type()) && call->arguments.size() >= 2) {
    if (const TracedArgument *argument = call->argument(use.operand, ""))
      if (std::optional<unsigned> parameter = parameterOf(*argument))
        builder.claim(*parameter, use, identityPermutation(rank), why);
    return;
  }
  if (candidates.size() == 1 && rank > 0 &&
      tensorsOfCall[call->result].size() == 1)
    builder.claim(candidates.front(), use, identityPermutation(rank), why);
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
    if (value.name() != node.output(0) || !value.type().has_tensor_type())
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
      if (const TracedCall *call = callOf(*use.node))
        claimedInCall[call->result].push_back(i);
    });
  llvm::StringSet<> done;
  for (auto &[node, call] : calls) {
    std::optional<BiasRole> role = biasRole(call, *node);
    if (!role)
      continue;
    std::optional<unsigned> parameter = parameterOf(*role->argument);
    if (!parameter || is_contained(claimedInCall[call.result], *parameter))
      continue;
    bool isFilled = role->operand >= 0 && role->operand < node->input_size() &&
                    !node->input(role->operand).empty();
    if (isFilled || !done.insert(call.result).second)
      continue;
    const onnx::TensorProto *weight =
        node->input_size() > 1 ? file.findInitializer(node->input(1)) : nullptr;
    builder.restore(*parameter, *node, role->operand, biasShape(file, *node),
                    weight ? weight->data_type() : onnx::TensorProto::FLOAT,
                    "argument of the traced call '" + call.result + "' (" +
                        call.op + ") that node '" + node->name() + "' (" +
                        node->op_type() +
                        ") lacks: it was zero, and the exporter removed it");
  }
}

static std::pair<StringRef, StringRef> moduleAndLeaf(StringRef name) {
  return name.contains('.') ? name.rsplit('.')
                            : std::pair<StringRef, StringRef>("", name);
}

/// A tie shows as one placeholder in the calls; the other names are those of
/// the modules that the calls were made in.
void Identifier::tieUnnamed(std::vector<std::string> &notes) {
  SmallVector<unsigned> unnamed;
  for (unsigned i = 0; i < builder.size(); ++i)
    if (!named[i] && !builder.isClaimed(i))
      unnamed.push_back(i);
  for (unsigned i : unnamed) {
    // Not a structured binding: lambdas cannot capture those in C++17.
    StringRef module = moduleAndLeaf(builder.nameOf(i)).first;
    StringRef leaf = moduleAndLeaf(builder.nameOf(i)).second;
    SmallVector<unsigned> users, inside;
    for (unsigned other = 0; other < builder.size(); ++other) {
      if (is_contained(unnamed, other) || !builder.isClaimed(other))
        continue;
      auto [otherModule, otherLeaf] = moduleAndLeaf(builder.nameOf(other));
      if (otherLeaf != leaf)
        continue;
      bool usedHere = false;
      builder.forEachClaim(other, [&](const InitializerUse &use) {
        usedHere |= StringRef(modulePath(*use.node)) == module;
      });
      if (usedHere)
        users.push_back(other);
      if (moduleAndLeaf(otherModule).first == module)
        inside.push_back(other);
    }
    if (users.size() == 1) {
      std::string name = builder.nameOf(users.front()).str();
      builder.tie(i, users.front(),
                  "'" + builder.nameOf(std::max(i, users.front())).str() +
                      "' is the same: module '" + module.str() + "' uses '" +
                      name + "'");
    } else if (!inside.empty()) {
      // Nothing proves a tie here (BERT's cls.predictions.bias), nor that the
      // parameter was folded away: only the user can say.
      builder.omit(i);
      std::string names = llvm::join(
          llvm::map_range(inside,
                          [&](unsigned other) {
                            return "'" + builder.nameOf(other).str() + "'";
                          }),
          ", ");
      notes.push_back(
          "no call names parameter '" + builder.nameOf(i).str() +
          "': if it is another name of " +
          (inside.size() > 1 ? "one of " : "") + names + ", say --tie " +
          builder.nameOf(i).str() + "=" +
          (inside.size() > 1 ? "NAME" : builder.nameOf(inside[0]).str()));
    }
  }
}

void Identifier::run(std::vector<std::string> &notes) {
  for (const SignatureInput &input : signature)
    if (input.kind == SignatureInput::Parameter)
      byPlaceholder.try_emplace(input.placeholder, builder.add(input.target));
  named.assign(builder.size(), false);
  readCalls(file.graph());
  uses = initializerUses(file);
  for (const InitializerUse &use : uses)
    if (const TracedCall *call = callOf(*use.node))
      if (isFloatTensor(*use.tensor) && use.tensor->dims_size() > 0) {
        auto &tensors = tensorsOfCall[call->result];
        if (!is_contained(tensors, use.tensor))
          tensors.push_back(use.tensor);
      }
  for (const InitializerUse &use : uses)
    identifyUse(use);
  restoreBiases();
  tieUnnamed(notes);
}

EmbeddingCall getEmbeddingCall(const onnx::NodeProto &node) {
  EmbeddingCall embedding;
  std::optional<TracedCall> call = tracedCall(node);
  if (!call || call->op != "embedding")
    return embedding;
  // aten.embedding(weight, indices, padding_idx = -1, scale_grad_by_freq =
  // False)
  const TracedArgument *padding = call->argument(2, "padding_idx"),
                       *scales = call->argument(3, "scale_grad_by_freq");
  int64_t index;
  if (padding && !StringRef(padding->text).getAsInteger(10, index) &&
      index >= 0)
    embedding.paddingIndex = index;
  embedding.scalesByFrequency = scales && scales->text == "True";
  return embedding;
}

static int64_t elementCount(const onnx::TensorProto &tensor) {
  int64_t count = 1;
  for (int64_t size : tensor.dims())
    count *= size;
  return count;
}

/// Why float initializers that are no parameter are none.
static void listConstants(const OnnxFile &file,
                          ArrayRef<SignatureInput> signature,
                          ParameterTable &table) {
  llvm::StringMap<StringRef> buffers, byTarget;
  for (const SignatureInput &input : signature)
    if (input.kind == SignatureInput::Buffer ||
        input.kind == SignatureInput::Constant) {
      buffers[input.placeholder] = input.target;
      byTarget[input.target] = input.target;
    }
  llvm::MapVector<const onnx::TensorProto *, std::string> reasons;
  for (const InitializerUse &use : initializerUses(file)) {
    if (!isFloatTensor(*use.tensor))
      continue;
    std::string &reason = reasons[use.tensor];
    if (table.useAt(*use.node, use.operand)) {
      reason = "parameter";
      continue;
    }
    if (!reason.empty())
      continue;
    if (byTarget.contains(use.tensor->name()))
      reason = "a buffer in the graph signature";
    else if (use.node->op_type() == "BatchNormalization" && use.operand >= 3)
      reason = "a running statistic of a batch norm";
    if (std::optional<TracedCall> call = tracedCall(*use.node))
      for (const TracedArgument &argument : call->arguments)
        if (reason.empty() && buffers.contains(argument.value()))
          reason = "buffer '" + buffers[argument.value()].str() + "'";
  }
  for (auto &[tensor, reason] : reasons) {
    if (reason == "parameter")
      continue;
    // What it would mean to train one number is nobody's question.
    if (reason.empty() && signature.empty() && elementCount(*tensor) > 1)
      table.undecided.push_back(tensor->name());
    table.constants.push_back(
        {tensor->name(),
         reason.empty() ? (signature.empty()
                               ? "neither name nor use makes it a parameter"
                               : "no parameter is this argument of the calls "
                                 "that use it")
                        : reason});
  }
}

/// A constant that the user wants trained becomes a parameter of its own name.
static void makeParameter(const OnnxFile &file, StringRef name,
                          ParameterTable &table) {
  const onnx::TensorProto *tensor = file.findInitializer(name);
  Parameter parameter;
  parameter.name = name.str();
  parameter.shape.assign(tensor->dims().begin(), tensor->dims().end());
  parameter.hasShape = true;
  parameter.dtype = tensor->data_type();
  SmallVector<int64_t, 4> same = identityPermutation(tensor->dims_size());
  parameter.initializers.push_back({parameter.name, same});
  parameter.why = "made a parameter by --trainable";
  unsigned number = table.parameters.size();
  for (const InitializerUse &use : initializerUses(file))
    if (use.tensor == tensor)
      table.uses[{use.node, use.operand}] = {number, same};
  table.parameters.push_back(std::move(parameter));
}

/// What training does with each parameter and constant.
static LogicalResult applyPatterns(const OnnxFile &file,
                                   const IdentifyOptions &options,
                                   ParameterTable &table) {
  FailureOr<NamePatterns> patterns =
      NamePatterns::compile(options.trainable, options.frozen, file.location());
  if (failed(patterns))
    return failure();
  SmallVector<StringRef> all;
  for (Parameter &parameter : table.parameters) {
    SmallVector<StringRef> names{parameter.name};
    llvm::append_range(names, parameter.aliases);
    llvm::append_range(all, names);
    parameter.trained = patterns->decide(names).value_or(parameter.trained) &&
                        parameter.kind != ParameterKind::FoldedAway;
  }
  std::vector<std::string> wanted;
  for (const auto &[name, reason] : table.constants) {
    all.push_back(name);
    std::optional<bool> decided = patterns->decide({name});
    if (decided == true)
      wanted.push_back(name);
    if (decided)
      llvm::erase(table.undecided, name);
  }
  if (failed(patterns->checkAllMatched(all, file.location())))
    return failure();
  for (const std::string &name : wanted) {
    makeParameter(file, name, table);
    llvm::erase_if(table.constants,
                   [&](const auto &each) { return each.first == name; });
  }
  return success();
}

static LogicalResult applyTies(const OnnxFile &file,
                               const IdentifyOptions &options,
                               ParameterBuilder &builder) {
  for (const auto &[a, b] : options.ties) {
    std::optional<unsigned> first = builder.find(a), second = builder.find(b);
    if (!first || !second)
      return emitError(file.location())
             << "expected two parameters in '--tie " << a << "=" << b
             << "', found none called '" << (first ? b : a) << "'";
    builder.tie(*first, *second, "tied by --tie " + a + "=" + b);
  }
  return success();
}

FailureOr<ParameterTable> identifyParameters(const OnnxFile &file,
                                             const IdentifyOptions &options) {
  if (hasDeclaredParameters(file)) {
    if (!options.ties.empty())
      return emitError(file.location())
             << "expected no --tie: acc-export has declared what is tied";
    FailureOr<ParameterTable> declared = readDeclaredParameters(file);
    if (failed(declared) || failed(applyPatterns(file, options, *declared)))
      return failure();
    return declared;
  }
  std::vector<SignatureInput> signature = readSignature(file.graph());
  ParameterBuilder builder(file);
  std::vector<std::string> notes;
  if (signature.empty()) {
    if (failed(identifyByName(file, builder, notes)))
      return failure();
  } else {
    Identifier(file, builder, signature).run(notes);
  }
  if (failed(applyTies(file, options, builder)))
    return failure();
  FailureOr<ParameterTable> table = builder.finish();
  if (failed(table))
    return failure();
  for (Parameter &parameter : table->parameters)
    if (parameter.kind == ParameterKind::FoldedAway) {
      parameter.why += parameter.why.empty() ? "" : "; ";
      parameter.why +=
          "no operand left in the graph is it: the exporter folded "
          "it into other constants, or nothing uses it; to train "
          "it export with torch.onnx.export(…, dynamo=True, "
          "optimize=False)";
    }
  llvm::erase_if(notes, [&](const std::string &note) {
    return llvm::any_of(options.ties, [&](const auto &tie) {
      return StringRef(note).contains("'" + tie.first + "'") ||
             StringRef(note).contains("'" + tie.second + "'");
    });
  });
  table->notes = std::move(notes);
  listConstants(file, signature, *table);
  if (failed(applyPatterns(file, options, *table)))
    return failure();
  return table;
}

} // namespace accel::onnxio
