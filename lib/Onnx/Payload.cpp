// Element types and hashes of tensor payloads.
#include "Payload.h"
#include "onnx-schema/onnx-ml.pb.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace accel::onnxio {

uint64_t hashBytes(ArrayRef<char> data) {
  return llvm::xxh3_64bits(ArrayRef<uint8_t>(
      reinterpret_cast<const uint8_t *>(data.data()), data.size()));
}

std::optional<unsigned> bitsOfElementType(int32_t dataType) {
  using T = onnx::TensorProto;
  switch (dataType) {
  case T::UINT2:
  case T::INT2:
    return 2;
  case T::UINT4:
  case T::INT4:
  case T::FLOAT4E2M1:
    return 4;
  case T::FLOAT6E2M3:
  case T::FLOAT6E3M2:
    return 6;
  case T::BOOL:
  case T::UINT8:
  case T::INT8:
  case T::FLOAT8E4M3FN:
  case T::FLOAT8E4M3FNUZ:
  case T::FLOAT8E5M2:
  case T::FLOAT8E5M2FNUZ:
  case T::FLOAT8E8M0:
    return 8;
  case T::UINT16:
  case T::INT16:
  case T::FLOAT16:
  case T::BFLOAT16:
    return 16;
  case T::FLOAT:
  case T::INT32:
  case T::UINT32:
    return 32;
  case T::DOUBLE:
  case T::INT64:
  case T::UINT64:
  case T::COMPLEX64:
    return 64;
  case T::COMPLEX128:
    return 128;
  default:
    return std::nullopt;
  }
}

std::string elementTypeName(int32_t dataType) {
  if (!onnx::TensorProto::DataType_IsValid(dataType))
    return "type " + std::to_string(dataType);
  return StringRef(onnx::TensorProto::DataType_Name(
                       static_cast<onnx::TensorProto::DataType>(dataType)))
      .lower();
}

} // namespace accel::onnxio
