// Tensor payloads: raw bytes, typed `*_data` fields, files of external data.
#include "Internal.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA1.h"
#include <cstring>

using namespace llvm;
using namespace mlir;

namespace accel::onnxio {

using ErrorFn = llvm::function_ref<InFlightDiagnostic()>;

/// Bytes that the tensor's shape and type ask for.
static FailureOr<uint64_t> expectedBytes(const onnx::TensorProto &tensor,
                                         ErrorFn error) {
  std::optional<unsigned> bits = bitsOfElementType(tensor.data_type());
  if (!bits)
    return error() << "has the unsupported element type '"
                   << elementTypeName(tensor.data_type()) << "'";
  // Of an empty tensor the other dimensions count too: strides are products of
  // them.
  uint64_t count = 1;
  for (int64_t dim : tensor.dims()) {
    if (dim < 0)
      return error() << "expected dimensions of at least 0, found " << dim;
    if (dim != 0 && count > (uint64_t(1) << 56) / uint64_t(dim))
      return error() << "has more elements than can be addressed";
    count *= std::max<uint64_t>(dim, 1);
  }
  if (llvm::is_contained(tensor.dims(), 0))
    return uint64_t(0);
  return (count * *bits + 7) / 8;
}

namespace {
/// Converts one typed data field into dense little-endian elements.
class TypedData {
public:
  TypedData(const onnx::TensorProto &tensor, uint64_t bytes, ErrorFn error)
      : tensor(tensor), bytes(bytes), error(error) {}

  FailureOr<std::unique_ptr<std::vector<char>>> decode();

private:
  /// Elements narrower than the field they are stored in; packed types count a
  /// byte per field element.
  template <typename Stored, typename Field>
  LogicalResult narrow(const Field &field) {
    if (failed(expectCount(field.size(), sizeof(Stored))))
      return failure();
    Stored *to = reinterpret_cast<Stored *>(result->data());
    constexpr int64_t low = -(int64_t(1) << (8 * sizeof(Stored) - 1));
    constexpr int64_t high = (int64_t(1) << (8 * sizeof(Stored))) - 1;
    for (auto [i, value] : llvm::enumerate(field)) {
      if (sizeof(Stored) < sizeof(value) &&
          (int64_t(value) < low || int64_t(value) > high))
        return error() << "holds " << int64_t(value) << ", which is no '"
                       << elementTypeName(tensor.data_type()) << "'";
      to[i] = static_cast<Stored>(value);
    }
    return success();
  }
  template <typename Field> LogicalResult copy(const Field &field) {
    if (failed(expectCount(field.size(), sizeof(*field.data()))))
      return failure();
    if (bytes)
      std::memcpy(result->data(), field.data(), bytes);
    return success();
  }
  LogicalResult expectCount(uint64_t count, uint64_t size) {
    if (count * size == bytes)
      return success();
    return error() << "expected " << bytes / size << " values of type '"
                   << elementTypeName(tensor.data_type()) << "', found "
                   << count;
  }
  LogicalResult decodeInto();

  const onnx::TensorProto &tensor;
  uint64_t bytes;
  ErrorFn error;
  std::unique_ptr<std::vector<char>> result;
};
} // namespace

LogicalResult TypedData::decodeInto() {
  using T = onnx::TensorProto;
  switch (tensor.data_type()) {
  case T::FLOAT:
  case T::COMPLEX64:
    return copy(tensor.float_data());
  case T::DOUBLE:
  case T::COMPLEX128:
    return copy(tensor.double_data());
  case T::INT64:
    return copy(tensor.int64_data());
  case T::UINT64:
    return copy(tensor.uint64_data());
  case T::UINT32:
    return narrow<uint32_t>(tensor.uint64_data());
  case T::INT32:
    return copy(tensor.int32_data());
  case T::INT16:
  case T::UINT16:
  case T::FLOAT16:
  case T::BFLOAT16:
    return narrow<uint16_t>(tensor.int32_data());
  default: // a byte, or packed into bytes
    return narrow<uint8_t>(tensor.int32_data());
  }
}

FailureOr<std::unique_ptr<std::vector<char>>> TypedData::decode() {
  uint64_t given = uint64_t(tensor.float_data_size()) +
                   tensor.double_data_size() + tensor.int32_data_size() +
                   tensor.int64_data_size() + tensor.uint64_data_size();
  // Before anything is allocated: a short file may claim terabytes.
  if (bytes > 16 * given)
    return error() << "expected " << bytes << " bytes of data, found "
                   << (given ? "fewer" : "none");
  result = std::make_unique<std::vector<char>>(bytes);
  if (failed(decodeInto()))
    return failure();
  return std::move(result);
}

/// A path below the model's folder, and nothing but: ONNX files come from
/// strangers, and what is read becomes part of what is written.
static LogicalResult checkLocation(StringRef location, ErrorFn error) {
  if (location.empty())
    return error() << "has external data without a location";
  if (location.contains('\0') || sys::path::is_absolute(location) ||
      llvm::is_contained(llvm::make_range(sys::path::begin(location),
                                          sys::path::end(location)),
                         ".."))
    return error() << "expected external data inside the model's folder, "
                      "found location '"
                   << location << "'";
  return success();
}

FailureOr<const MemoryBuffer *>
PayloadReader::open(StringRef location, std::string &path, ErrorFn error) {
  if (failed(checkLocation(location, error)))
    return failure();
  SmallString<128> full(sys::path::parent_path(source.path));
  std::string folder = full.empty() ? "." : full.str().str();
  sys::path::append(full, location);
  path = full.str().str();
  auto known = files.find(path);
  if (known != files.end())
    return known->second.get();

  SmallString<128> realFolder, realFile;
  std::error_code code = sys::fs::real_path(full, realFile);
  // Weights may be elsewhere than where a model is compiled.
  if (code == std::errc::no_such_file_or_directory)
    return (files[path] = nullptr).get();
  if (code)
    return error() << "cannot open external data '" << path
                   << "': " << code.message();
  if (std::error_code code = sys::fs::real_path(folder, realFolder))
    return error() << "cannot open folder '" << folder
                   << "': " << code.message();
  if (!StringRef(realFolder).ends_with("/"))
    realFolder += "/";
  if (!StringRef(realFile).starts_with(realFolder))
    return error() << "expected external data inside the model's folder, "
                      "found '"
                   << location << "', a link to '" << realFile << "'";
  if (!sys::fs::is_regular_file(Twine(realFile)))
    return error() << "expected external data in a regular file, found '"
                   << path << "'";
  auto buffer = MemoryBuffer::getFile(realFile, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!buffer)
    return error() << "cannot open external data '" << path
                   << "': " << buffer.getError().message();
  return (files[path] = std::move(*buffer)).get();
}

FailureOr<Payload> PayloadReader::readExternal(const onnx::TensorProto &tensor,
                                               uint64_t bytes, ErrorFn error) {
  StringMap<StringRef> entries;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    StringRef key = entry.key();
    if (key != "location" && key != "offset" && key != "length" &&
        key != "checksum")
      return error() << "has external data with the unknown key '" << key
                     << "', expected 'location', 'offset', 'length' or "
                        "'checksum'";
    if (!entries.try_emplace(key, entry.value()).second)
      return error() << "has external data with two '" << key << "'";
  }
  if (tensor.has_raw_data() || tensor.float_data_size() ||
      tensor.int32_data_size() || tensor.int64_data_size() ||
      tensor.double_data_size() || tensor.uint64_data_size())
    return error() << "has external data and data in the model file";

  uint64_t offset = 0, length = bytes;
  for (auto [key, value] : {std::pair("offset", &offset), {"length", &length}})
    if (entries.contains(key) && entries[key].getAsInteger(10, *value))
      return error() << "expected a number of bytes as external data's '" << key
                     << "', found '" << entries[key] << "'";
  if (length != bytes)
    return error() << "expected " << bytes << " bytes of external data, found "
                   << "length " << length;
  std::string path;
  FailureOr<const MemoryBuffer *> file =
      open(entries.lookup("location"), path, error);
  if (failed(file))
    return failure();
  Payload payload;
  payload.path = path;
  payload.offset = offset;
  payload.bytes = length;
  payload.byReference = payload.isExternal = true;
  payload.isAbsent = !*file;
  if (payload.isAbsent) {
    if (entries.contains("checksum"))
      return error() << "expected '" << path << "' with SHA-1 "
                     << entries["checksum"].lower() << ", found no such file";
    return payload;
  }
  uint64_t size = (*file)->getBufferSize();
  if (offset > size || length > size - offset)
    return error() << "expected " << length << " bytes at offset " << offset
                   << " of '" << path << "', found a file of " << size
                   << " bytes";
  if (entries.contains("checksum")) {
    std::string &found = checksums[path];
    if (found.empty())
      found = toHex(SHA1::hash(arrayRefFromStringRef((*file)->getBuffer())),
                    /*LowerCase=*/true);
    if (!entries["checksum"].equals_insensitive(found))
      return error() << "expected '" << path << "' with SHA-1 "
                     << entries["checksum"].lower() << ", found " << found;
  }
  payload.data =
      ArrayRef<char>((*file)->getBufferStart(), size).slice(offset, length);
  return payload;
}

FailureOr<Payload> PayloadReader::read(const onnx::TensorProto &tensor,
                                       ErrorFn error) {
  if (tensor.data_type() == onnx::TensorProto::STRING)
    return Payload();
  if (tensor.has_segment())
    return error() << "is a segment of a tensor, expected whole tensors";
  FailureOr<uint64_t> bytes = expectedBytes(tensor, error);
  if (failed(bytes))
    return failure();
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
    return readExternal(tensor, *bytes, error);
  if (tensor.external_data_size())
    return error() << "names external data, but says that its data is in the "
                      "model file";

  bool typed = tensor.float_data_size() || tensor.int32_data_size() ||
               tensor.int64_data_size() || tensor.double_data_size() ||
               tensor.uint64_data_size();
  if (tensor.string_data_size())
    return error() << "has strings for data, but element type '"
                   << elementTypeName(tensor.data_type()) << "'";
  Payload payload;
  payload.bytes = *bytes;
  if (tensor.has_raw_data()) {
    if (typed)
      return error() << "has both raw and typed data";
    if (tensor.raw_data().size() != *bytes)
      return error() << "expected " << *bytes << " bytes of data, found "
                     << tensor.raw_data().size();
    payload.data =
        ArrayRef<char>(tensor.raw_data().data(), tensor.raw_data().size());
    return payload;
  }
  FailureOr<std::unique_ptr<std::vector<char>>> values =
      TypedData(tensor, *bytes, error).decode();
  if (failed(values))
    return failure();
  payload.data = **values;
  decoded.push_back(std::move(*values));
  return payload;
}

} // namespace accel::onnxio
