// Loading of an ONNX model: the order of the steps, and what can be asked of
// the result. Each step is a file of its own beside this one.
#include "OnnxFile.h"
#include "Internal.h"
#include "NodeInfo.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/FileSystem.h"
#include <climits>
#include <cstring>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

using namespace llvm;
using namespace mlir;

namespace accel::onnxio {

StringRef canonicalDomain(StringRef domain) {
  return domain == "ai.onnx" ? StringRef() : domain;
}

Location Source::file() const {
  return FileLineColLoc::get(context, path, 0, 0);
}

Location Source::node(const onnx::NodeProto &node) const {
  Location where = file();
  if (std::optional<SourceLine> line = sourceLine(node))
    where = FileLineColLoc::get(context, line->file, line->line, 0);
  if (std::optional<SourceLine> inner = libraryLine(node))
    where = CallSiteLoc::get(
        FileLineColLoc::get(context, inner->file, inner->line, 0), where);
  std::string name = node.name().empty() ? node.op_type() : node.name();
  Location named = NameLoc::get(
      StringAttr::get(context, name.empty() ? "node" : name), where);
  // Beside the modules, as if it were one: what torch.utils.checkpoint ran.
  if (StringRef call = nodeProperty(node, "accel.checkpoint"); !call.empty())
    named = FusedLoc::get(context, {named},
                          StringAttr::get(context, "checkpoint#" + call));
  std::string module = modulePath(node);
  if (module.empty())
    return named;
  return FusedLoc::get(context, {named}, StringAttr::get(context, module));
}

InFlightDiagnostic Source::error() const { return emitError(file()); }

InFlightDiagnostic Source::error(const onnx::NodeProto &node) const {
  InFlightDiagnostic diagnostic = emitError(this->node(node));
  diagnostic << "node '" << node.name() << "' (" << node.op_type() << "): ";
  return diagnostic;
}

void inventNodeNames(onnx::GraphProto &graph) {
  for (int i = 0; i < graph.node_size(); ++i) {
    onnx::NodeProto &node = *graph.mutable_node(i);
    if (node.name().empty())
      node.set_name(node.op_type() + "#" + std::to_string(i));
    for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        inventNodeNames(*attribute.mutable_g());
      for (onnx::GraphProto &inner : *attribute.mutable_graphs())
        inventNodeNames(inner);
    }
  }
}

/// The steps of OnnxFile::load, with access to its insides.
class Loader {
public:
  Loader(OnnxFile &file) : file(file), source{file.ctx, file.filePath} {}

  LogicalResult run();

private:
  LogicalResult parse();
  LogicalResult readPayloads();
  LogicalResult readInitializers(PayloadReader &reader);
  LogicalResult readOthers(const onnx::GraphProto &graph, bool isMain,
                           PayloadReader &reader);
  LogicalResult readOne(const onnx::TensorProto &tensor, PayloadReader &reader,
                        llvm::function_ref<InFlightDiagnostic()> error);

  OnnxFile &file;
  Source source;
};

LogicalResult Loader::parse() {
  StringRef bytes = file.buffer->getBuffer();
  if (bytes.size() > size_t(INT_MAX))
    return source.error() << "expected a model of at most 2 GiB with larger "
                             "weights as external data, found "
                          << bytes.size() << " bytes";
  google::protobuf::LogSilencer silence;
  google::protobuf::io::CodedInputStream in(
      reinterpret_cast<const uint8_t *>(bytes.data()), int(bytes.size()));
  in.SetTotalBytesLimit(int(bytes.size()));
  if (!file.proto.ParseFromCodedStream(&in) || !in.ConsumedEntireMessage())
    return source.error()
           << "expected an ONNX model, found a file that is truncated or no "
              "protobuf message of that kind";
  return success();
}

LogicalResult Loader::readOne(const onnx::TensorProto &tensor,
                              PayloadReader &reader,
                              llvm::function_ref<InFlightDiagnostic()> error) {
  FailureOr<Payload> payload = reader.read(tensor, error);
  if (failed(payload))
    return failure();
  file.payloads[&tensor] = std::move(*payload);
  return success();
}

/// Initializers of the main graph: raw data becomes a reference into the model
/// file, and protobuf's copy of it is released.
LogicalResult Loader::readInitializers(PayloadReader &reader) {
  ArrayRef<char> bytes(file.buffer->getBufferStart(),
                       file.buffer->getBufferSize());
  std::vector<int64_t> offsets = rawDataOffsets(bytes);
  onnx::GraphProto &graph = *file.proto.mutable_graph();
  for (int i = 0; i < graph.initializer_size(); ++i) {
    onnx::TensorProto &tensor = *graph.mutable_initializer(i);
    file.initializersByName[tensor.name()] = &tensor;
    auto error = [&] {
      InFlightDiagnostic diagnostic = source.error();
      diagnostic << "initializer '" << tensor.name() << "': ";
      return diagnostic;
    };
    if (failed(readOne(tensor, reader, error)))
      return failure();
    Payload &payload = file.payloads[&tensor];
    if (!tensor.has_raw_data() || size_t(i) >= offsets.size() || offsets[i] < 0)
      continue;
    // Serialisations that are split and merged again are legal protobuf: where
    // the bytes found are not the tensor's, it keeps its copy.
    uint64_t offset = offsets[i];
    if (offset > bytes.size() || payload.bytes > bytes.size() - offset ||
        (payload.bytes && std::memcmp(bytes.data() + offset,
                                      payload.data.data(), payload.bytes)))
      continue;
    payload.path = source.path;
    payload.offset = offset;
    payload.byReference = true;
    payload.data = bytes.slice(offset, payload.bytes);
    tensor.mutable_raw_data()->clear();
    tensor.mutable_raw_data()->shrink_to_fit();
  }
  return success();
}

/// Tensors in attributes, and initializers of subgraphs.
LogicalResult Loader::readOthers(const onnx::GraphProto &graph, bool isMain,
                                 PayloadReader &reader) {
  if (!isMain)
    for (const onnx::TensorProto &tensor : graph.initializer())
      if (failed(readOne(tensor, reader, [&] {
            InFlightDiagnostic diagnostic = source.error();
            diagnostic << "initializer '" << tensor.name() << "': ";
            return diagnostic;
          })))
        return failure();
  for (const onnx::NodeProto &node : graph.node())
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      auto error = [&] {
        InFlightDiagnostic diagnostic = source.error(node);
        diagnostic << "attribute '" << attribute.name() << "': ";
        return diagnostic;
      };
      if (attribute.has_sparse_tensor() || attribute.sparse_tensors_size())
        return source.error(node)
               << "has a sparse tensor in attribute '" << attribute.name()
               << "', expected dense tensors";
      if (attribute.has_t() && failed(readOne(attribute.t(), reader, error)))
        return failure();
      for (const onnx::TensorProto &tensor : attribute.tensors())
        if (failed(readOne(tensor, reader, error)))
          return failure();
      if (attribute.has_g() && failed(readOthers(attribute.g(), false, reader)))
        return failure();
      for (const onnx::GraphProto &inner : attribute.graphs())
        if (failed(readOthers(inner, false, reader)))
          return failure();
    }
  return success();
}

LogicalResult Loader::readPayloads() {
  PayloadReader reader(source, file.externalFiles, file.decoded);
  if (failed(readInitializers(reader)))
    return failure();
  return readOthers(file.proto.graph(), true, reader);
}

LogicalResult Loader::run() {
  if (failed(parse()) || failed(checkFields(file.proto, source)) ||
      failed(checkModel(file.proto, source)))
    return failure();
  onnx::GraphProto &graph = *file.proto.mutable_graph();
  // Names come from places in the file, so before anything moves.
  inventNodeNames(graph);
  if (failed(inlineFunctions(file.proto, source)) ||
      failed(sortNodes(graph, source)) ||
      failed(checkValues(graph, file, source)))
    return failure();
  // From here on the graph stays as it is: payloads are known by address.
  if (failed(readPayloads()))
    return failure();
  for (const onnx::ValueInfoProto &input : graph.input())
    if (!file.findInitializer(input.name()))
      file.realInputs.push_back(&input);
  return success();
}

OnnxFile::OnnxFile(StringRef path, MLIRContext *context)
    : filePath(path), ctx(context) {}
OnnxFile::~OnnxFile() = default;

FailureOr<std::unique_ptr<OnnxFile>> OnnxFile::load(StringRef path,
                                                    MLIRContext *context) {
  Source source{context, path.str()};
  if (sys::fs::is_directory(path))
    return source.error() << "expected an ONNX model, found a folder";
  sys::fs::file_status status;
  if (!sys::fs::status(path, status) &&
      (status.type() == sys::fs::file_type::character_file ||
       status.type() == sys::fs::file_type::block_file)) // need not end
    return source.error() << "expected an ONNX model, found a device";
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!buffer)
    return source.error() << "cannot open the model: "
                          << buffer.getError().message();
  return load(std::move(*buffer), path, context);
}

FailureOr<std::unique_ptr<OnnxFile>>
OnnxFile::load(std::unique_ptr<MemoryBuffer> model, StringRef path,
               MLIRContext *context) {
  std::unique_ptr<OnnxFile> file(new OnnxFile(path, context));
  file->buffer = std::move(model);
  if (failed(Loader(*file).run()))
    return failure();
  return std::move(file);
}

int64_t OnnxFile::opsetVersion(StringRef domain) const {
  for (const onnx::OperatorSetIdProto &import : proto.opset_import())
    if (canonicalDomain(import.domain()) == canonicalDomain(domain))
      return import.version();
  return 0;
}

int64_t OnnxFile::opsetVersion(const onnx::NodeProto &node) const {
  int64_t version;
  if (!nodeProperty(node, opsetProperty).getAsInteger(10, version))
    return version;
  return opsetVersion(node.domain());
}

const onnx::TensorProto *OnnxFile::findInitializer(StringRef name) const {
  return initializersByName.lookup(name);
}

const Payload &OnnxFile::payload(const onnx::TensorProto &tensor) const {
  auto it = payloads.find(&tensor);
  assert(it != payloads.end() && "not a tensor of this model");
  return it->second;
}

ArrayRef<char> OnnxFile::values(const onnx::TensorProto &tensor) const {
  const Payload &found = payload(tensor);
  if (found.isAbsent && !missing)
    missing = &tensor;
  return found.data;
}

LogicalResult OnnxFile::checkValuesRead() const {
  if (!missing)
    return success();
  return emitError(location())
         << "the values of initializer '" << missing->name()
         << "' decide what is compiled, and there is no file '"
         << payload(*missing).path << "'";
}

Location OnnxFile::location() const { return Source{ctx, filePath}.file(); }

Location OnnxFile::location(const onnx::NodeProto &node) const {
  return Source{ctx, filePath}.node(node);
}

} // namespace accel::onnxio
