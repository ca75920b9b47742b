// Inlining of local functions (ModelProto.functions): bodies take the place of
// calls, so that nothing after the loader knows that functions exist.
#include "Internal.h"
#include "NodeInfo.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace mlir;

namespace accel::onnxio {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

static std::string functionKey(StringRef domain, StringRef name,
                               StringRef overload) {
  std::string key = canonicalDomain(domain).str() + "::" + name.str();
  return overload.empty() ? key : key + ":" + overload.str();
}

namespace {
/// The names of one call's body: what formal and inner values are called in the
/// graph that the body goes into.
using Renames = StringMap<std::string>;

class Inliner {
public:
  Inliner(onnx::ModelProto &model, const Source &source)
      : model(model), source(source) {}
  LogicalResult run();

private:
  LogicalResult inlineGraph(onnx::GraphProto &graph);
  LogicalResult inlineNodes(Nodes &nodes);
  LogicalResult expand(const onnx::NodeProto &call,
                       const onnx::FunctionProto &function, Nodes &into);
  LogicalResult mapSignature(const onnx::NodeProto &call,
                             const onnx::FunctionProto &function,
                             StringRef prefix, Renames &renames, Nodes &into);
  LogicalResult substitute(onnx::NodeProto &node, const onnx::NodeProto &call,
                           const onnx::FunctionProto &function);
  LogicalResult substitute(onnx::GraphProto &graph, const onnx::NodeProto &call,
                           const onnx::FunctionProto &function);
  void rename(onnx::NodeProto &node, const Renames &renames);
  void rename(onnx::GraphProto &graph, Renames renames);
  void tag(onnx::NodeProto &node, const onnx::FunctionProto &function,
           const onnx::NodeProto &call);
  std::string uniqueName(std::string wanted);

  /// A graph that expands to more nodes than this is an attack, not a model.
  static constexpr int64_t maxNodes = 1000000;

  onnx::ModelProto &model;
  const Source &source;
  StringMap<const onnx::FunctionProto *> functions;
  StringMap<int64_t> modelOpsets;
  llvm::StringSet<> taken;
  SmallVector<std::string> stack;
  int64_t nodesMade = 0;
};
} // namespace

std::string Inliner::uniqueName(std::string wanted) {
  std::string name = wanted;
  for (int i = 1; !taken.insert(name).second; ++i)
    name = wanted + "#" + std::to_string(i);
  return name;
}

/// Formal inputs are the call's operands, formal outputs its results; a result
/// that is an input needs an Identity, since a value has one name.
LogicalResult Inliner::mapSignature(const onnx::NodeProto &call,
                                    const onnx::FunctionProto &function,
                                    StringRef prefix, Renames &renames,
                                    Nodes &into) {
  if (call.input_size() > function.input_size() ||
      call.output_size() > function.output_size())
    return source.error(call)
           << "expected at most " << function.input_size() << " operands and "
           << function.output_size() << " results, as function '"
           << function.name() << "' has, found " << call.input_size() << " and "
           << call.output_size();
  for (int i = 0; i < function.input_size(); ++i)
    if (!renames
             .try_emplace(function.input(i),
                          i < call.input_size() ? call.input(i) : "")
             .second)
      return source.error()
             << "function '" << function.name() << "' has two inputs called '"
             << function.input(i) << "'";
  llvm::StringSet<> seen;
  for (int i = 0; i < function.output_size(); ++i) {
    const std::string &formal = function.output(i);
    if (!seen.insert(formal).second)
      return source.error() << "function '" << function.name()
                            << "' has two outputs called '" << formal << "'";
    bool used = i < call.output_size() && !call.output(i).empty();
    auto input = renames.find(formal);
    if (input != renames.end()) {
      if (!used)
        continue;
      onnx::NodeProto *copy = into.Add();
      copy->set_op_type("Identity");
      copy->set_name(prefix.str() + "/Identity");
      copy->add_input(input->second);
      copy->add_output(call.output(i));
      *copy->mutable_metadata_props() = call.metadata_props();
      continue;
    }
    renames[formal] =
        used ? call.output(i) : uniqueName(prefix.str() + "/" + formal);
  }
  return success();
}

LogicalResult Inliner::substitute(onnx::GraphProto &graph,
                                  const onnx::NodeProto &call,
                                  const onnx::FunctionProto &function) {
  for (onnx::NodeProto &node : *graph.mutable_node())
    if (failed(substitute(node, call, function)))
      return failure();
  return success();
}

/// Puts the call's attributes, or the function's defaults, where the body
/// refers to them; a reference to one that neither gives is left out.
LogicalResult Inliner::substitute(onnx::NodeProto &node,
                                  const onnx::NodeProto &call,
                                  const onnx::FunctionProto &function) {
  google::protobuf::RepeatedPtrField<onnx::AttributeProto> attributes;
  for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
    if (attribute.ref_attr_name().empty()) {
      if (attribute.has_g() &&
          failed(substitute(*attribute.mutable_g(), call, function)))
        return failure();
      for (onnx::GraphProto &graph : *attribute.mutable_graphs())
        if (failed(substitute(graph, call, function)))
          return failure();
      attributes.Add()->Swap(&attribute);
      continue;
    }
    StringRef wanted = attribute.ref_attr_name();
    const onnx::AttributeProto *value = findAttribute(call, wanted);
    if (!value)
      for (const onnx::AttributeProto &given : function.attribute_proto())
        if (StringRef(given.name()) == wanted)
          value = &given;
    if (!value) {
      if (!is_contained(function.attribute(), wanted.str()))
        return source.error(node)
               << "refers to attribute '" << wanted << "', which function '"
               << function.name() << "' does not declare";
      continue;
    }
    if (attribute.has_type() && value->has_type() &&
        attribute.type() != value->type())
      return source.error(call)
             << "expected attribute '" << wanted << "' of kind "
             << onnx::AttributeProto::AttributeType_Name(attribute.type())
             << ", found "
             << onnx::AttributeProto::AttributeType_Name(value->type());
    onnx::AttributeProto *copy = attributes.Add();
    *copy = *value;
    copy->set_name(attribute.name());
  }
  node.mutable_attribute()->Swap(&attributes);
  return success();
}

void Inliner::rename(onnx::NodeProto &node, const Renames &renames) {
  auto apply = [&](std::string &name) {
    auto it = renames.find(name);
    if (it != renames.end())
      name = it->second;
  };
  for (std::string &input : *node.mutable_input())
    apply(input);
  for (std::string &output : *node.mutable_output())
    apply(output);
  for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
    if (attribute.has_g())
      rename(*attribute.mutable_g(), renames);
    for (onnx::GraphProto &graph : *attribute.mutable_graphs())
      rename(graph, renames);
  }
}

/// In a subgraph only names of the enclosing body change: what the subgraph
/// defines itself hides them.
void Inliner::rename(onnx::GraphProto &graph, Renames renames) {
  for (const onnx::ValueInfoProto &input : graph.input())
    renames.erase(input.name());
  for (const onnx::TensorProto &tensor : graph.initializer())
    renames.erase(tensor.name());
  for (const onnx::NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      renames.erase(output);
  for (onnx::NodeProto &node : *graph.mutable_node())
    rename(node, renames);
  for (onnx::ValueInfoProto &output : *graph.mutable_output()) {
    auto it = renames.find(output.name());
    if (it != renames.end())
      output.set_name(it->second);
  }
}

/// Metadata of the call where the body has none, and the function's own opset.
void Inliner::tag(onnx::NodeProto &node, const onnx::FunctionProto &function,
                  const onnx::NodeProto &call) {
  for (const onnx::StringStringEntryProto &entry : call.metadata_props())
    if (StringRef(entry.key()) != opsetProperty &&
        nodeProperty(node, entry.key()).empty())
      *node.add_metadata_props() = entry;
  StringRef domain = canonicalDomain(node.domain());
  for (const onnx::OperatorSetIdProto &import : function.opset_import())
    if (canonicalDomain(import.domain()) == domain &&
        modelOpsets.lookup(domain) != import.version()) {
      onnx::StringStringEntryProto *entry = node.add_metadata_props();
      entry->set_key(opsetProperty.str());
      entry->set_value(std::to_string(import.version()));
    }
  for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
    if (attribute.has_g())
      for (onnx::NodeProto &inner : *attribute.mutable_g()->mutable_node())
        tag(inner, function, call);
    for (onnx::GraphProto &graph : *attribute.mutable_graphs())
      for (onnx::NodeProto &inner : *graph.mutable_node())
        tag(inner, function, call);
  }
}

LogicalResult Inliner::expand(const onnx::NodeProto &call,
                              const onnx::FunctionProto &function,
                              Nodes &into) {
  std::string key =
      functionKey(function.domain(), function.name(), function.overload());
  if (is_contained(stack, key))
    return source.error(call)
           << "expected functions that do not call themselves, found '"
           << function.name() << "' within its own body";
  const std::string &prefix = call.name();
  Renames renames;
  Nodes body;
  if (failed(mapSignature(call, function, prefix, renames, body)))
    return failure();
  for (const onnx::NodeProto &node : function.node())
    for (const std::string &output : node.output())
      if (!output.empty() && !renames.contains(output))
        renames[output] = uniqueName(prefix + "/" + output);
  for (int i = 0; i < function.node_size(); ++i) {
    if (++nodesMade > maxNodes)
      return source.error() << "expected functions that expand to at most "
                            << maxNodes << " nodes, found more";
    onnx::NodeProto &node = *body.Add();
    node = function.node(i);
    if (failed(substitute(node, call, function)))
      return failure();
    rename(node, renames);
    tag(node, function, call);
    std::string own = node.name().empty()
                          ? node.op_type() + "#" + std::to_string(i)
                          : node.name();
    node.set_name(prefix + "/" + own);
  }
  stack.push_back(key);
  if (failed(inlineNodes(body)))
    return failure();
  stack.pop_back();
  for (onnx::NodeProto &node : body)
    into.Add()->Swap(&node);
  return success();
}

LogicalResult Inliner::inlineGraph(onnx::GraphProto &graph) {
  return inlineNodes(*graph.mutable_node());
}

LogicalResult Inliner::inlineNodes(Nodes &nodes) {
  Nodes result;
  for (onnx::NodeProto &node : nodes) {
    auto it = functions.find(
        functionKey(node.domain(), node.op_type(), node.overload()));
    if (it != functions.end()) {
      if (failed(expand(node, *it->second, result)))
        return failure();
      continue;
    }
    for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g() && failed(inlineGraph(*attribute.mutable_g())))
        return failure();
      for (onnx::GraphProto &graph : *attribute.mutable_graphs())
        if (failed(inlineGraph(graph)))
          return failure();
    }
    result.Add()->Swap(&node);
  }
  nodes.Swap(&result);
  return success();
}

LogicalResult Inliner::run() {
  if (model.functions().empty())
    return success();
  for (const onnx::OperatorSetIdProto &import : model.opset_import())
    modelOpsets[canonicalDomain(import.domain())] = import.version();
  for (const onnx::FunctionProto &function : model.functions())
    if (!functions
             .try_emplace(functionKey(function.domain(), function.name(),
                                      function.overload()),
                          &function)
             .second)
      return source.error()
             << "function '" << function.name() << "' of domain '"
             << function.domain() << "' is defined twice";
  forEachGraph(model.graph(), [&](const onnx::GraphProto &graph) {
    for (const onnx::ValueInfoProto &input : graph.input())
      taken.insert(input.name());
    for (const onnx::TensorProto &tensor : graph.initializer())
      taken.insert(tensor.name());
    for (const onnx::NodeProto &node : graph.node())
      for (const std::string &output : node.output())
        taken.insert(output);
  });
  if (failed(inlineGraph(*model.mutable_graph())))
    return failure();
  functions.clear();
  model.clear_functions();
  return success();
}

LogicalResult inlineFunctions(onnx::ModelProto &model, const Source &source) {
  return Inliner(model, source).run();
}

} // namespace accel::onnxio
