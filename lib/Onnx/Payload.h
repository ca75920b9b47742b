// The bytes of an ONNX tensor: where they lie in which file, so that weights
// can be referenced by byte range instead of being copied into the executable.
#ifndef ACCEL_LIB_ONNX_PAYLOAD_H
#define ACCEL_LIB_ONNX_PAYLOAD_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace accel::onnxio {

/// The values of one tensor: dense, little-endian, row-major, 4- and 2-bit
/// types packed from the low bits up (as ONNX packs raw_data). A tensor of
/// strings has none.
struct Payload {
  /// The file that holds the bytes: the model itself or a file of external
  /// data, as a path that can be opened from the current directory. Empty when
  /// they are in no file as they stand here (decoded from typed data).
  std::string path;
  /// Offset of the first byte in `path`; meaningful when `byReference`.
  uint64_t offset = 0;
  uint64_t bytes = 0;
  /// True when bytes [offset, offset + bytes) of `path` are these.
  bool byReference = false;
  /// True when `path` is a file of external data, which nobody has read yet: it
  /// may be larger than memory.
  bool isExternal = false;
  /// True when that file is not there: `data` is empty. Whoever needs values
  /// asks OnnxFile::values.
  bool isAbsent = false;
  /// The bytes, mapped from the file or owned by the OnnxFile, which must
  /// outlive every use of them. Not necessarily aligned to the element.
  llvm::ArrayRef<char> data;
};

/// XXH3-64 of a range of bytes: what the executable may remember of a weight.
uint64_t hashBytes(llvm::ArrayRef<char> data);

/// Bits of one element of an ONNX element type (onnx::TensorProto::DataType):
/// 1 byte for bool, 4 bits for int4. Empty for strings and unknown types.
std::optional<unsigned> bitsOfElementType(int32_t dataType);

/// The type's name as ONNX writes it, lower case: "float", "int64". Unknown
/// types give "type 99".
std::string elementTypeName(int32_t dataType);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_PAYLOAD_H
