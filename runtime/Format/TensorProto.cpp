// The wire format: https://protobuf.dev/programming-guides/encoding, the
// fields: message TensorProto of onnx.proto.

#include "accel-rt/TensorFileFormat.h"

#include "Format/Layout.h"

#include <cstring>

namespace accel::rt {
namespace {

/// TensorProto.DataType.
std::optional<DType> fromOnnxType(uint64_t type) {
  switch (type) {
  case 1:
    return DType::F32;
  case 2:
    return DType::UI8;
  case 3:
    return DType::I8;
  case 4:
    return DType::UI16;
  case 5:
    return DType::I16;
  case 6:
    return DType::I32;
  case 7:
    return DType::I64;
  case 9:
    return DType::I1;
  case 10:
    return DType::F16;
  case 11:
    return DType::F64;
  case 12:
    return DType::UI32;
  case 13:
    return DType::UI64;
  case 16:
    return DType::BF16;
  case 17:
    return DType::F8E4M3FN;
  case 19:
    return DType::F8E5M2;
  case 18:
    return DType::F8E4M3FNUZ;
  case 20:
    return DType::F8E5M2FNUZ;
  case 21:
    return DType::UI4;
  case 22:
    return DType::I4;
  case 23:
    return DType::F4E2M1FN;
  case 24:
    return DType::F8E8M0FNU;
  case 25:
    return DType::UI2;
  case 26:
    return DType::I2;
  case 27:
    return DType::F6E2M3FN;
  case 28:
    return DType::F6E3M2FN;
  default:
    return std::nullopt;
  }
}

/// A message in memory, read from left to right; a read past the end fails.
class Wire {
public:
  Wire(const uint8_t *begin, const uint8_t *end) : next(begin), end(end) {}
  bool atEnd() const { return next == end; }

  bool varint(uint64_t &value) {
    value = 0;
    for (int shift = 0; shift < 64 && next != end; shift += 7) {
      uint8_t byte = *next++;
      value |= uint64_t(byte & 127) << shift;
      if (!(byte & 128))
        return true;
    }
    return false;
  }
  template <class T> bool fixed(T &value) {
    if (static_cast<size_t>(end - next) < sizeof(T))
      return false;
    std::memcpy(&value, next, sizeof(T));
    next += sizeof(T);
    return true;
  }
  /// A length and that many bytes.
  bool bytes(const uint8_t *&begin, uint64_t &length) {
    if (!varint(length) || length > static_cast<uint64_t>(end - next))
      return false;
    begin = next;
    next += length;
    return true;
  }

private:
  const uint8_t *next, *end;
};

enum WireType { Varint = 0, Fixed64 = 1, Length = 2, Fixed32 = 5 };

/// Everything that a TensorProto says.
struct Message {
  std::vector<int64_t> dims;
  uint64_t type = 0;
  std::string name;
  const uint8_t *raw = nullptr;
  uint64_t rawBytes = 0;
  std::vector<uint64_t> integers; ///< int32_data, int64_data, uint64_data
  std::vector<float> floats;
  std::vector<double> doubles;
};

/// Reads a repeated scalar, packed or not.
template <class T, class Read>
bool repeated(Wire &wire, unsigned type, unsigned scalarType,
              std::vector<T> &values, Read read) {
  T value{};
  if (type == scalarType) {
    bool good = read(wire, value);
    values.push_back(value);
    return good;
  }
  const uint8_t *begin;
  uint64_t length;
  if (type != Length || !wire.bytes(begin, length))
    return false;
  Wire packed(begin, begin + length);
  while (!packed.atEnd()) {
    if (!read(packed, value))
      return false;
    values.push_back(value);
  }
  return true;
}

const char *const kDamaged = "expected a TensorProto, found damaged bytes";

Status decode(Wire wire, Message &message) {
  auto readVarint = [](Wire &from, auto &value) {
    uint64_t bits;
    bool good = from.varint(bits);
    value = static_cast<std::remove_reference_t<decltype(value)>>(bits);
    return good;
  };
  auto readFixed = [](Wire &from, auto &value) { return from.fixed(value); };
  while (!wire.atEnd()) {
    uint64_t key, length;
    const uint8_t *text;
    if (!wire.varint(key))
      return Status::error(kDamaged);
    unsigned field = static_cast<unsigned>(key >> 3), type = key & 7;
    bool good = false;
    switch (field) {
    case 1:
      good = repeated(wire, type, Varint, message.dims, readVarint);
      break;
    case 2:
      good = type == Varint && wire.varint(message.type);
      break;
    case 4:
      good = repeated(wire, type, Fixed32, message.floats, readFixed);
      break;
    case 5:
    case 7:
    case 11:
      good = repeated(wire, type, Varint, message.integers, readVarint);
      break;
    case 8:
      good = type == Length && wire.bytes(text, length);
      if (good)
        message.name.assign(reinterpret_cast<const char *>(text), length);
      break;
    case 9:
      good = type == Length && wire.bytes(message.raw, message.rawBytes);
      break;
    case 10:
      good = repeated(wire, type, Fixed64, message.doubles, readFixed);
      break;
    case 12: // doc_string
    case 16: // metadata_props
      good = type == Length && wire.bytes(text, length);
      break;
    case 14: // data_location: 0 is here
      good = type == Varint && wire.varint(length);
      if (good && length != 0)
        return Status::error("expected the data in the file itself, found "
                             "external data");
      break;
    default:
      return Status::error("found field " + std::to_string(field) +
                           " of TensorProto, which is not supported");
    }
    if (!good)
      return Status::error(kDamaged);
  }
  return Status();
}

/// The elements of typed fields as bytes of `dtype`.
template <class T, class V>
void store(const std::vector<V> &values, std::vector<char> &bytes) {
  for (V value : values) {
    T element = static_cast<T>(value);
    bytes.insert(bytes.end(), reinterpret_cast<char *>(&element),
                 reinterpret_cast<char *>(&element) + sizeof(T));
  }
}

std::vector<char> typedBytes(const Message &message, DType dtype) {
  std::vector<char> bytes;
  if (dtype == DType::F32)
    store<float>(message.floats, bytes);
  else if (dtype == DType::F64)
    store<double>(message.doubles, bytes);
  else if (dtypeBytes(dtype) == 1)
    store<uint8_t>(message.integers, bytes);
  else if (dtypeBytes(dtype) == 2)
    store<uint16_t>(message.integers, bytes);
  else if (dtypeBytes(dtype) == 4)
    store<uint32_t>(message.integers, bytes);
  else
    store<uint64_t>(message.integers, bytes);
  return bytes;
}

/// A byte for each number of less, of which the first has the low bits; what is
/// below zero is so as a byte too.
std::vector<char> unpack(const char *packed, uint64_t count, DType dtype) {
  int bits = dtypeBits(dtype);
  bool isSigned = dtype == DType::I4 || dtype == DType::I2;
  std::vector<char> bytes(count);
  for (uint64_t i = 0; i < count; ++i) {
    int code = 0;
    for (int bit = 0; bit < bits; ++bit) {
      uint64_t at = i * bits + bit;
      code |= (packed[at / 8] >> (at % 8) & 1) << bit;
    }
    if (isSigned && code >> (bits - 1))
      code -= 1 << bits;
    bytes[i] = static_cast<char>(code);
  }
  return bytes;
}

} // namespace

Status readTensorProto(std::string_view file, TensorHeader &header,
                       std::optional<std::vector<char>> &typed) {
  auto *begin = reinterpret_cast<const uint8_t *>(file.data());
  Message message;
  ACCEL_RT_RETURN_IF_ERROR(decode(Wire(begin, begin + file.size()), message));
  std::optional<DType> dtype = fromOnnxType(message.type);
  if (!dtype)
    return Status::error(
        "expected elements that are numbers, found ONNX type " +
        std::to_string(message.type));
  std::optional<uint64_t> bytes = tensorBytes(*dtype, message.dims);
  if (!bytes)
    return Status::error("expected a shape that its bytes can fill");
  bool isPacked = dtypeBits(*dtype) < 8;
  uint64_t found = message.rawBytes,
           expected = isPacked ? (*bytes * dtypeBits(*dtype) + 7) / 8 : *bytes;
  if (!message.raw) {
    typed = typedBytes(message, *dtype);
    found = typed->size();
  }
  if (found != expected)
    return Status::error("expected " + std::to_string(expected) +
                         " bytes of elements, found " + std::to_string(found));
  if (isPacked)
    typed = unpack(message.raw ? reinterpret_cast<const char *>(message.raw)
                               : typed->data(),
                   *bytes, *dtype);
  header.name = message.name;
  header.dtype = *dtype;
  header.shape = message.dims;
  header.strides = rowMajorStrides(header.shape);
  header.offset = typed ? 0 : static_cast<uint64_t>(message.raw - begin);
  return Status();
}

} // namespace accel::rt
