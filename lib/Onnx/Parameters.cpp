// Parameter identity of a whole file: by the exporter's metadata where there is
// some (ParametersByCall.cpp), else by name and use; then what the user adds,
// and what is no parameter.
#include "Parameters.h"

#include "AccountForCalls.h"
#include "Adapters.h"
#include "DeclaredParameters.h"
#include "Internal.h"
#include "NamePatterns.h"
#include "ParameterBuilder.h"
#include "ParameterRoles.h"
#include "RemarkCalls.h"
#include "TracedProgram.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace mlir;

namespace accel::onnxio {

static int64_t elementCount(const onnx::TensorProto &tensor) {
  int64_t count = 1;
  for (int64_t size : tensor.dims())
    count *= size;
  return count;
}

/// Whether a file of PyTorch's TorchScript exporter calls an initializer by the
/// name of a state: what it computes itself has a node's name or a number.
static bool isNamedState(const OnnxFile &file, StringRef name) {
  return file.model().producer_name() == "pytorch" && !name.contains("::") &&
         !name.contains('/') && !llvm::all_of(name, llvm::isDigit);
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
    else if (use.node->op_type() == "Dropout")
      reason = "the ratio of a dropout";
    if (std::optional<TracedCall> call = tracedCall(*use.node))
      for (const TracedArgument &argument : call->arguments)
        if (reason.empty() && buffers.contains(argument.value()))
          reason = "buffer '" + buffers[argument.value()].str() + "'";
  }
  for (auto &[tensor, reason] : reasons) {
    if (reason == "parameter")
      continue;
    // One number is a constant, unless it has been a state of the module.
    if (reason.empty() && signature.empty() &&
        (elementCount(*tensor) > 1 || isNamedState(file, tensor->name())))
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

/// What is doubted of parameters that the user does not train is no doubt, and
/// what --allow-folded names is held constant.
static void settleDoubts(NamePatterns &patterns, bool isOptimized,
                         bool allowFolded, ParameterTable &table) {
  llvm::StringSet<> wanted, told;
  auto isGone = [](const Parameter &parameter) {
    return parameter.kind == ParameterKind::FoldedAway ||
           (parameter.kind == ParameterKind::Removed && !parameter.hasShape);
  };
  for (const Parameter &parameter : table.parameters) {
    SmallVector<StringRef> names{parameter.name};
    llvm::append_range(names, parameter.aliases);
    // In a file that no optimizer touched, what no call names nothing uses.
    if (isGone(parameter) ? isOptimized && patterns.decide(names) != false
                          : parameter.trained)
      for (StringRef name : names)
        wanted.insert(name);
  }
  llvm::erase_if(table.doubts, [&](const Doubt &doubt) {
    return !doubt.parameters.empty() &&
           llvm::none_of(doubt.parameters, [&](const std::string &name) {
             return wanted.contains(name);
           });
  });
  for (const Doubt &doubt : table.doubts)
    for (const std::string &name : doubt.parameters)
      told.insert(name);
  for (Parameter &parameter : table.parameters) {
    if (isGone(parameter) && wanted.contains(parameter.name) &&
        !told.contains(parameter.name))
      table.doubts.push_back({nullptr,
                              {parameter.name},
                              "parameter '" + parameter.name +
                                  "' is in no initializer: the exporter folded "
                                  "it into constants, or nothing uses it",
                              Doubt::Folded});
    if (!allowFolded)
      continue;
    for (const Doubt &doubt : table.doubts)
      for (const std::string &name : doubt.parameters)
        if (doubt.kind == Doubt::Folded &&
            (name == parameter.name ||
             llvm::is_contained(parameter.aliases, name)))
          parameter.trained = false;
  }
}

/// What training does with each parameter and constant; `saysTrained`: whether
/// the file says of its parameters which are trained.
static LogicalResult applyPatterns(const OnnxFile &file,
                                   const IdentifyOptions &options,
                                   bool isOptimized, bool saysTrained,
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
    std::optional<bool> decided = patterns->decide(names);
    parameter.trained = decided.value_or(parameter.trained) &&
                        parameter.kind != ParameterKind::FoldedAway;
    if (parameter.trained && !decided && !saysTrained &&
        llvm::none_of(names, [](StringRef name) {
          return readAdapterName(name).has_value();
        }))
      table.besideAdapters.push_back(parameter.name);
  }
  if (std::optional<std::string> module = findAdaptedModule(all))
    table.adaptedModule = *module;
  else
    table.besideAdapters.clear();
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
  settleDoubts(*patterns, isOptimized, options.allowFolded, table);
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

/// torch.export takes a tensor that it is given as two inputs (labels=ids) for
/// one of them, and nothing in the file tells that from an unused input.
static void noteUnread(const OnnxFile &file, std::vector<std::string> &notes) {
  llvm::StringSet<> reads;
  forEachGraph(file.graph(), [&](const onnx::GraphProto &graph) {
    for (const onnx::ValueInfoProto &output : graph.output())
      reads.insert(output.name());
    for (const onnx::NodeProto &node : graph.node())
      for (const std::string &input : node.input())
        reads.insert(input);
  });
  auto isInput = [&](const onnx::ValueInfoProto &input) {
    return !file.findInitializer(input.name());
  };
  for (const onnx::ValueInfoProto &input : file.graph().input())
    if (isInput(input) && !reads.contains(input.name()))
      for (const onnx::ValueInfoProto &other : file.graph().input())
        if (isInput(other) && reads.contains(other.name()) &&
            other.type().SerializeAsString() ==
                input.type().SerializeAsString()) {
          notes.push_back("nothing reads input '" + input.name() + "', and '" +
                          other.name() +
                          "' is of its type: if the sample gave one tensor as "
                          "both, the exporter took one for the other; export "
                          "with a copy of it (clone()), or with acc-export");
          break;
        }
}

FailureOr<ParameterTable> identifyParameters(const OnnxFile &file,
                                             const IdentifyOptions &options) {
  if (hasDeclaredParameters(file)) {
    if (!options.ties.empty())
      return emitError(file.location())
             << "expected no --tie: acc-export has declared what is tied";
    FailureOr<ParameterTable> declared = readDeclaredParameters(file);
    if (failed(declared) ||
        failed(applyPatterns(file, options, /*isOptimized=*/false,
                             /*saysTrained=*/true, *declared)))
      return failure();
    return declared;
  }
  TracedProgram program(file);
  ArrayRef<SignatureInput> signature = program.signature();
  ParameterBuilder builder(file);
  std::vector<std::string> notes;
  if (signature.empty()) {
    if (failed(identifyByName(file, builder, notes)))
      return failure();
  } else {
    identifyByCall(program, builder, notes);
  }
  if (failed(applyTies(file, options, builder)))
    return failure();
  FailureOr<ParameterTable> table = builder.finish(
      program.isOptimized() || signature.empty() ? kExportRemedy
                                                 : kAccExportRemedy);
  if (failed(table))
    return failure();
  if (!signature.empty()) {
    table->doubts = accountForCalls(program, builder);
    table->remarks = remarkCalls(program, builder);
    noteUnread(file, notes);
  }
  for (Parameter &parameter : table->parameters)
    if (parameter.kind == ParameterKind::FoldedAway) {
      parameter.why += parameter.why.empty() ? "" : "; ";
      parameter.why +=
          program.isOptimized() || signature.empty()
              ? "no operand left in the graph is it: the exporter folded it "
                "into other constants, or nothing uses it; to train it " +
                    table->exportRemedy.str()
              : "no traced call names it: nothing uses it, and its value is "
                "not in the file";
    }
  llvm::erase_if(notes, [&](const std::string &note) {
    return llvm::any_of(options.ties, [&](const auto &tie) {
      return StringRef(note).contains("'" + tie.first + "'") ||
             StringRef(note).contains("'" + tie.second + "'");
    });
  });
  table->notes = std::move(notes);
  listConstants(file, signature, *table);
  if (failed(applyPatterns(file, options, program.isOptimized(),
                           /*saysTrained=*/false, *table)))
    return failure();
  return table;
}

} // namespace accel::onnxio
