// `--original-weights`: the parameters that an exporter kept only folded, from
// a safetensors file that has them as they were. What the file holds under its
// own name must be the same there, or the weights are another model's.
#include "DeclaredParameters.h"
#include "Internal.h"
#include "NodeInfo.h"
#include "ParameterBuilder.h"
#include "TracedCall.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using namespace mlir;

namespace accel::onnxio {

namespace {
/// One tensor of a safetensors file.
struct SavedTensor {
  int32_t dtype = 0;
  SmallVector<int64_t, 4> shape;
  uint64_t offset = 0; ///< in the file
  ArrayRef<char> data;
};
} // namespace

static int32_t typeOf(StringRef name) {
  using T = onnx::TensorProto;
  return llvm::StringSwitch<int32_t>(name)
      .Case("F32", T::FLOAT)
      .Case("F64", T::DOUBLE)
      .Case("F16", T::FLOAT16)
      .Case("BF16", T::BFLOAT16)
      .Default(T::UNDEFINED);
}

/// Of a header's entry; none where it contradicts the file.
static std::optional<SavedTensor>
readEntry(const json::Object &entry, ArrayRef<char> payload, uint64_t start) {
  std::optional<StringRef> type = entry.getString("dtype");
  const json::Array *shape = entry.getArray("shape"),
                    *range = entry.getArray("data_offsets");
  if (!type || !shape || !range || range->size() != 2)
    return std::nullopt;
  SavedTensor tensor;
  tensor.dtype = typeOf(*type);
  int64_t bytes = bitsOfElementType(tensor.dtype).value_or(0) / 8;
  for (const json::Value &each : *shape) {
    std::optional<int64_t> size = each.getAsInteger();
    if (!size || *size < 0 || llvm::MulOverflow(bytes, *size, bytes))
      return std::nullopt;
    tensor.shape.push_back(*size);
  }
  std::optional<int64_t> begin = (*range)[0].getAsInteger(),
                         end = (*range)[1].getAsInteger();
  if (!begin || !end || *begin < 0 || *end < *begin ||
      uint64_t(*end) > payload.size() ||
      (tensor.dtype != onnx::TensorProto::UNDEFINED && *end - *begin != bytes))
    return std::nullopt;
  tensor.data = payload.slice(*begin, *end - *begin);
  tensor.offset = start + *begin;
  return tensor;
}

static bool definesValue(const onnx::GraphProto &graph, StringRef name) {
  bool found = false;
  forEachGraph(graph, [&](const onnx::GraphProto &each) {
    for (const onnx::NodeProto &node : each.node())
      found |= is_contained(node.output(), name);
    for (const onnx::ValueInfoProto &input : each.input())
      found |= input.name() == name;
  });
  return found;
}

LogicalResult OnnxFile::readOriginals(StringRef path) {
  Source where{ctx, path.str()};
  if (hasDeclaredParameters(*this))
    return where.error() << "expected no --original-weights: acc-export has "
                            "kept all parameters as they are";
  auto opened = MemoryBuffer::getFile(path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!opened)
    return where.error() << "cannot open the original weights: "
                         << opened.getError().message();
  std::unique_ptr<MemoryBuffer> &kept = externalFiles[path];
  kept = std::move(*opened);
  ArrayRef<char> all(kept->getBufferStart(), kept->getBufferSize());
  uint64_t length = all.size() < 8 ? 0 : support::endian::read64le(all.data());
  constexpr uint64_t longest = uint64_t(100) << 20;
  if (length < 2 || length > longest || length > all.size() - 8)
    return where.error() << "expected the header of a safetensors file";
  StringRef text(all.data() + 8, length);
  Expected<json::Value> header = json::parse(text);
  const json::Object *entries = header ? header->getAsObject() : nullptr;
  if (!header)
    consumeError(header.takeError());
  if (!entries)
    return where.error() << "expected the JSON header of a safetensors file";
  uint64_t start = 8 + length;
  size_t used = 0;
  for (const SignatureInput &input : readSignature(graph())) {
    const json::Object *entry = entries->getObject(input.target);
    if (input.kind != SignatureInput::Parameter || !entry)
      continue;
    std::optional<SavedTensor> saved =
        readEntry(*entry, all.drop_front(start), start);
    if (!saved)
      return where.error() << "expected a type, a shape and a range of the "
                              "file for '"
                           << input.target << "'";
    if (saved->dtype == onnx::TensorProto::UNDEFINED)
      return where.error() << "expected floats for parameter '" << input.target
                           << "'";
    ++used;
    if (const onnx::TensorProto *held = findInitializer(input.target)) {
      SmallVector<int64_t, 4> shape(held->dims().begin(), held->dims().end());
      if (held->data_type() != saved->dtype || shape != saved->shape ||
          values(*held) != saved->data)
        return where.error()
               << "expected the weights that '" << filePath
               << "' was exported with, found other values of parameter '"
               << input.target << "'";
      continue;
    }
    if (definesValue(graph(), input.target))
      continue;
    auto tensor = std::make_unique<onnx::TensorProto>();
    tensor->set_name(input.target);
    tensor->set_data_type(saved->dtype);
    for (int64_t size : saved->shape)
      tensor->add_dims(size);
    Payload payload;
    payload.path = path.str();
    payload.offset = saved->offset;
    payload.bytes = saved->data.size();
    payload.byReference = true;
    payload.data = saved->data;
    payloads[tensor.get()] = payload;
    initializersByName[input.target] = tensor.get();
    originals.push_back(std::move(tensor));
  }
  if (used == 0)
    return where.error() << "expected weights by the names of the parameters "
                            "of '"
                         << filePath << "', found none of them";
  return success();
}

bool OnnxFile::isOriginal(const onnx::TensorProto &tensor) const {
  return any_of(originals,
                [&](const auto &each) { return each.get() == &tensor; });
}

} // namespace accel::onnxio
