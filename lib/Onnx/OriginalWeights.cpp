// `--original-weights`: the parameters that an exporter kept only folded, from
// a safetensors file that has them as they were. What the file holds under its
// own name must be the same there, or the weights are another model's.

#include "DeclaredParameters.h"
#include "Internal.h"
#include "NodeInfo.h"
#include "ParameterBuilder.h"
#include "TracedCall.h"
#include "accel-rt/SafetensorsFormat.h"
#include "llvm/Support/Endian.h"

using namespace llvm;
using namespace mlir;

namespace accel::onnxio {

static int32_t typeOf(rt::DType dtype) {
  switch (dtype) {
  case rt::DType::F32:
    return onnx::TensorProto::FLOAT;
  case rt::DType::F64:
    return onnx::TensorProto::DOUBLE;
  case rt::DType::F16:
    return onnx::TensorProto::FLOAT16;
  case rt::DType::BF16:
    return onnx::TensorProto::BFLOAT16;
  default:
    return onnx::TensorProto::UNDEFINED;
  }
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
  std::vector<rt::SafetensorsEntry> entries;
  rt::Status status = rt::checkSafetensorsLength(length, all.size());
  if (status.ok())
    status = rt::readSafetensorsHeader({all.data() + 8, length},
                                       all.size() - 8 - length, entries);
  if (!status.ok())
    return where.error() << status.message();
  llvm::StringMap<const rt::SafetensorsEntry *> byName;
  for (const rt::SafetensorsEntry &entry : entries)
    byName[entry.name] = &entry;
  uint64_t start = 8 + length;
  size_t used = 0;
  for (const SignatureInput &input : readSignature(graph())) {
    const rt::SafetensorsEntry *saved = byName.lookup(input.target);
    if (input.kind != SignatureInput::Parameter || !saved)
      continue;
    int32_t type = typeOf(saved->dtype);
    if (type == onnx::TensorProto::UNDEFINED)
      return where.error() << "expected floats for parameter '" << input.target
                           << "'";
    ArrayRef<char> data = all.slice(start + saved->begin, saved->bytes);
    ++used;
    if (const onnx::TensorProto *held = findInitializer(input.target)) {
      if (held->data_type() != type || !equal(held->dims(), saved->shape) ||
          values(*held) != data)
        return where.error()
               << "expected the weights that '" << filePath
               << "' was exported with, found other values of parameter '"
               << input.target
               << "'; if they are those, the exporter has folded something "
                  "into it, as a batch norm: export with acc-export, or with "
                  "torch.onnx.export(…, dynamo=True, optimize=False)";
      continue;
    }
    if (definesValue(graph(), input.target))
      continue;
    auto tensor = std::make_unique<onnx::TensorProto>();
    tensor->set_name(input.target);
    tensor->set_data_type(type);
    for (int64_t size : saved->shape)
      tensor->add_dims(size);
    Payload payload;
    payload.path = path.str();
    payload.offset = start + saved->begin;
    payload.bytes = data.size();
    payload.byReference = true;
    payload.data = data;
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
