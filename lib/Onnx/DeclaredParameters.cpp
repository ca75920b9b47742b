// Reading of what acc-export declares. Nothing is believed that the file itself
// can contradict: a tool that rewrites files may leave the properties behind
// and change what they speak of.
#include "DeclaredParameters.h"
#include "ParameterBuilder.h"
#include "ParameterRoles.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using namespace mlir;

namespace accel::onnxio {

namespace {
constexpr StringLiteral exportProperty = "accel.export";
constexpr StringLiteral parametersProperty = "accel.parameters";
constexpr int64_t knownVersion = 1;

/// One entry of `accel.parameters`.
struct Declaration {
  std::string name;
  std::vector<std::string> aliases;
  bool isParameter = false;
  bool requiresGrad = false;
  std::string initializer;
  SmallVector<int64_t, 4> shape;
  std::string dtype;
};

class Reader {
public:
  explicit Reader(const OnnxFile &file) : file(file) {}
  FailureOr<ParameterTable> read();

private:
  InFlightDiagnostic error(StringRef property) const {
    return emitError(file.location()) << "property '" << property << "': ";
  }
  /// An error about entry `index`, by its name where that is known.
  InFlightDiagnostic error(size_t index) const {
    InFlightDiagnostic diagnostic = error(parametersProperty);
    diagnostic << "entry " << index;
    if (!declarations[index].name.empty())
      diagnostic << " ('" << declarations[index].name << "')";
    diagnostic << ": ";
    return diagnostic;
  }
  LogicalResult checkVersion() const;
  LogicalResult parseEntry(const json::Value &value, size_t index);
  LogicalResult checkEntry(size_t index);
  void addParameter(const Declaration &declaration, ParameterTable &table);
  void listConstants(ParameterTable &table) const;

  const OnnxFile &file;
  std::vector<Declaration> declarations;
  llvm::StringSet<> names, initializers, graphInputs;
};
} // namespace

static StringRef
valueOf(const google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>
            &properties,
        StringRef key) {
  for (const onnx::StringStringEntryProto &entry : properties)
    if (entry.key() == key)
      return entry.value();
  return {};
}

/// The ONNX type that PyTorch's name stands for; UNDEFINED where a parameter
/// cannot have it.
static int32_t parameterType(StringRef dtype) {
  return llvm::StringSwitch<int32_t>(dtype)
      .Case("float32", onnx::TensorProto::FLOAT)
      .Case("float64", onnx::TensorProto::DOUBLE)
      .Case("float16", onnx::TensorProto::FLOAT16)
      .Case("bfloat16", onnx::TensorProto::BFLOAT16)
      .Default(onnx::TensorProto::UNDEFINED);
}

LogicalResult Reader::checkVersion() const {
  Expected<json::Value> parsed =
      json::parse(valueOf(file.model().metadata_props(), exportProperty));
  if (!parsed) {
    consumeError(parsed.takeError());
    return error(exportProperty) << "expected JSON, export the model again";
  }
  const json::Object *object = parsed->getAsObject();
  std::optional<int64_t> version =
      object ? object->getInteger("version") : std::nullopt;
  if (!version)
    return error(exportProperty)
           << "expected an object with an integer 'version', export the model "
              "again";
  if (*version != knownVersion)
    return error(exportProperty)
           << "expected version " << knownVersion << ", found " << *version
           << ": use acc-export and acc-opt of one release";
  return success();
}

LogicalResult Reader::parseEntry(const json::Value &value, size_t index) {
  declarations.emplace_back();
  Declaration &into = declarations.back();
  const json::Object *object = value.getAsObject();
  if (!object)
    return error(index) << "expected an object";
  auto text = [&](StringRef key, std::string &result) -> LogicalResult {
    std::optional<StringRef> found = object->getString(key);
    if (!found || found->empty())
      return error(index) << "expected a string '" << key << "'";
    result = found->str();
    return success();
  };
  std::string kind;
  if (failed(text("name", into.name)) || failed(text("kind", kind)) ||
      failed(text("initializer", into.initializer)) ||
      failed(text("dtype", into.dtype)))
    return failure();
  into.isParameter = kind == "parameter";
  if (!into.isParameter && kind != "buffer")
    return error(index) << "expected kind 'parameter' or 'buffer', found '"
                        << kind << "'";
  std::optional<bool> requiresGrad = object->getBoolean("requires_grad");
  if (!requiresGrad)
    return error(index) << "expected true or false for 'requires_grad'";
  into.requiresGrad = *requiresGrad;
  const json::Array *aliases = object->getArray("aliases"),
                    *shape = object->getArray("shape");
  if (!aliases || !shape)
    return error(index) << "expected a list '"
                        << (aliases ? "shape" : "aliases") << "'";
  for (const json::Value &alias : *aliases) {
    std::optional<StringRef> name = alias.getAsString();
    if (!name || name->empty())
      return error(index) << "expected names in 'aliases'";
    into.aliases.push_back(name->str());
  }
  for (const json::Value &dim : *shape) {
    std::optional<int64_t> size = dim.getAsInteger();
    if (!size || *size < 0)
      return error(index) << "expected sizes in 'shape'";
    into.shape.push_back(*size);
  }
  return success();
}

LogicalResult Reader::checkEntry(size_t index) {
  const Declaration &declaration = declarations[index];
  SmallVector<StringRef> own{declaration.name};
  llvm::append_range(own, declaration.aliases);
  for (StringRef name : own)
    if (!names.insert(name).second)
      return error(index) << "the name '" << name << "' is declared twice";
  const onnx::TensorProto *tensor =
      file.findInitializer(declaration.initializer);
  if (!tensor)
    return error(index) << "the file has no initializer '"
                        << declaration.initializer
                        << "': it was changed after acc-export wrote it";
  if (!initializers.insert(declaration.initializer).second)
    return error(index) << "initializer '" << declaration.initializer
                        << "' is declared twice";
  if (!declaration.isParameter)
    return success();
  SmallVector<int64_t, 4> shape(tensor->dims().begin(), tensor->dims().end());
  if (shape != declaration.shape)
    return error(index) << "expected initializer '" << declaration.initializer
                        << "' of shape " << printShape(declaration.shape)
                        << ", found " << printShape(shape);
  if (parameterType(declaration.dtype) != tensor->data_type())
    return error(index) << "expected initializer '" << declaration.initializer
                        << "' of type " << declaration.dtype << ", found "
                        << elementTypeName(tensor->data_type());
  // What is no input may have been folded into copies since: they would stay.
  if (!graphInputs.contains(declaration.initializer))
    return error(index)
           << "expected initializer '" << declaration.initializer
           << "' to be an input of the graph: the file was changed after "
              "acc-export wrote it, give acc-opt the file as it was";
  return success();
}

void Reader::addParameter(const Declaration &declaration,
                          ParameterTable &table) {
  Parameter parameter;
  parameter.name = declaration.name;
  parameter.aliases = declaration.aliases;
  parameter.shape = declaration.shape;
  parameter.hasShape = true;
  parameter.dtype = parameterType(declaration.dtype);
  SmallVector<int64_t, 4> same = identityPermutation(declaration.shape.size());
  parameter.initializers.push_back({declaration.initializer, same});
  unsigned number = table.parameters.size();
  bool isUsed = false;
  for (const InitializerUse &use : initializerUses(file))
    if (use.tensor->name() == declaration.initializer) {
      table.uses[{use.node, use.operand}] = {number, same};
      isUsed = true;
    }
  parameter.trained = declaration.requiresGrad && isUsed;
  parameter.why = "declared by acc-export";
  if (!isUsed)
    parameter.why += "; nothing uses it, so it is kept as it is";
  else if (!declaration.requiresGrad)
    parameter.why += "; requires_grad is false";
  table.parameters.push_back(std::move(parameter));
}

void Reader::listConstants(ParameterTable &table) const {
  llvm::StringSet<> listed;
  for (const InitializerUse &use : initializerUses(file)) {
    StringRef name = use.tensor->name();
    if (!isFloatTensor(*use.tensor) || table.useAt(*use.node, use.operand) ||
        !listed.insert(name).second)
      continue;
    table.constants.push_back(
        {name.str(), initializers.contains(name)
                         ? "a buffer, as acc-export declares"
                         : "a constant of the traced program"});
  }
}

FailureOr<ParameterTable> Reader::read() {
  if (failed(checkVersion()))
    return failure();
  StringRef text = valueOf(file.graph().metadata_props(), parametersProperty);
  if (text.empty())
    return error(parametersProperty)
           << "missing, although the file is marked by '" << exportProperty
           << "': it was changed after acc-export wrote it";
  Expected<json::Value> parsed = json::parse(text);
  if (!parsed) {
    consumeError(parsed.takeError());
    return error(parametersProperty) << "expected JSON, export the model again";
  }
  const json::Array *entries = parsed->getAsArray();
  if (!entries)
    return error(parametersProperty) << "expected a list of entries";
  for (const onnx::ValueInfoProto &input : file.graph().input())
    graphInputs.insert(input.name());
  ParameterTable table;
  for (auto [index, entry] : llvm::enumerate(*entries)) {
    if (failed(parseEntry(entry, index)) || failed(checkEntry(index)))
      return failure();
    if (declarations.back().isParameter)
      addParameter(declarations.back(), table);
  }
  listConstants(table);
  return table;
}

bool hasDeclaredParameters(const OnnxFile &file) {
  return llvm::any_of(file.model().metadata_props(),
                      [](const onnx::StringStringEntryProto &entry) {
                        return entry.key() == exportProperty;
                      });
}

FailureOr<ParameterTable> readDeclaredParameters(const OnnxFile &file) {
  return Reader(file).read();
}

} // namespace accel::onnxio
