// Checks of a model as a whole and of the values of its graphs.
#include "Internal.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace mlir;

namespace accel::onnxio {

/// IR versions before 3 have no opset imports.
static constexpr int64_t firstIrVersion = 3;

static LogicalResult checkImports(const onnx::ModelProto &model,
                                  const Source &source) {
  if (model.opset_import().empty())
    return source.error() << "imports no operator set, expected at least one";
  llvm::StringSet<> domains;
  for (const onnx::OperatorSetIdProto &import : model.opset_import()) {
    if (import.version() < 1)
      return source.error()
             << "imports version " << import.version() << " of domain '"
             << import.domain() << "', expected at least 1";
    if (!domains.insert(canonicalDomain(import.domain())).second)
      return source.error()
             << "imports domain '" << import.domain() << "' twice";
  }
  return success();
}

LogicalResult checkModel(const onnx::ModelProto &model, const Source &source) {
  if (!model.has_ir_version())
    return source.error() << "expected an ONNX model, found no IR version";
  if (model.ir_version() < firstIrVersion ||
      model.ir_version() > onnx::IR_VERSION)
    return source.error() << "unsupported IR version " << model.ir_version()
                          << ", expected " << firstIrVersion << " to "
                          << int(onnx::IR_VERSION);
  if (!model.has_graph())
    return source.error() << "expected a graph, found a model without one";
  if (failed(checkImports(model, source)))
    return failure();
  if (model.training_info_size())
    return source.error() << "holds training information, which is not "
                             "supported: training is compiled from options";
  if (model.configuration_size())
    return source.error() << "holds device configurations, which are not "
                             "supported: the mesh is an option";
  return success();
}

namespace {
class ValueChecker {
public:
  ValueChecker(const OnnxFile &file, const Source &source)
      : file(file), source(source) {}

  LogicalResult checkGraph(const onnx::GraphProto &graph);

private:
  LogicalResult checkHeader(const onnx::GraphProto &graph,
                            llvm::StringSet<> &own);
  LogicalResult checkNode(const onnx::NodeProto &node, llvm::StringSet<> &own);
  bool isDefined(StringRef name) const {
    return any_of(scopes, [&](const llvm::StringSet<> *scope) {
      return scope->contains(name);
    });
  }

  const OnnxFile &file;
  const Source &source;
  SmallVector<const llvm::StringSet<> *> scopes;
};
} // namespace

LogicalResult ValueChecker::checkNode(const onnx::NodeProto &node,
                                      llvm::StringSet<> &own) {
  if (node.op_type().empty())
    return source.error(node) << "has no operator";
  if (file.opsetVersion(node) == 0)
    return source.error(node)
           << "is of domain '" << node.domain()
           << "', which the model neither imports nor defines";
  if (node.device_configurations_size())
    return source.error(node) << "holds device configurations, which are not "
                                 "supported: the mesh is an option";
  for (const std::string &input : node.input())
    if (!input.empty() && !isDefined(input))
      return source.error(node)
             << "uses '" << input << "', which nothing defines";
  llvm::StringSet<> attributes;
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (!attributes.insert(attribute.name()).second)
      return source.error(node)
             << "has two attributes called '" << attribute.name() << "'";
    if (!attribute.ref_attr_name().empty())
      return source.error(node)
             << "refers to attribute '" << attribute.ref_attr_name()
             << "' of a function, but is in none";
    if (attribute.has_g() && failed(checkGraph(attribute.g())))
      return failure();
    for (const onnx::GraphProto &graph : attribute.graphs())
      if (failed(checkGraph(graph)))
        return failure();
  }
  for (const std::string &output : node.output())
    if (!output.empty() && !own.insert(output).second)
      return source.error(node)
             << "defines '" << output << "', which is defined before";
  return success();
}

/// What a graph defines before its nodes; an initializer may be the default of
/// an input of its name.
LogicalResult ValueChecker::checkHeader(const onnx::GraphProto &graph,
                                        llvm::StringSet<> &own) {
  if (graph.sparse_initializer_size())
    return source.error() << "sparse initializer '"
                          << graph.sparse_initializer(0).values().name()
                          << "' is not supported, expected dense initializers";
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    if (tensor.name().empty())
      return source.error()
             << "an initializer of graph '" << graph.name() << "' has no name";
    if (!own.insert(tensor.name()).second)
      return source.error()
             << "initializer '" << tensor.name() << "' is defined twice";
  }
  llvm::StringSet<> inputs;
  for (const onnx::ValueInfoProto &input : graph.input()) {
    if (input.name().empty())
      return source.error()
             << "an input of graph '" << graph.name() << "' has no name";
    if (!inputs.insert(input.name()).second)
      return source.error()
             << "input '" << input.name() << "' is defined twice";
    own.insert(input.name());
  }
  return success();
}

LogicalResult ValueChecker::checkGraph(const onnx::GraphProto &graph) {
  llvm::StringSet<> own;
  if (failed(checkHeader(graph, own)))
    return failure();
  scopes.push_back(&own);
  for (const onnx::NodeProto &node : graph.node())
    if (failed(checkNode(node, own)))
      return failure();
  llvm::StringSet<> outputs;
  for (const onnx::ValueInfoProto &output : graph.output()) {
    if (!isDefined(output.name()))
      return source.error() << "output '" << output.name() << "' of graph '"
                            << graph.name() << "' is defined nowhere";
    if (!outputs.insert(output.name()).second)
      return source.error()
             << "output '" << output.name() << "' is listed twice";
  }
  scopes.pop_back();
  return success();
}

LogicalResult checkValues(const onnx::GraphProto &graph, const OnnxFile &file,
                          const Source &source) {
  return ValueChecker(file, source).checkGraph(graph);
}

} // namespace accel::onnxio
