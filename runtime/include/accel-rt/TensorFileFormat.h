// Files that hold one tensor, as the compiler and the runtime both read them:
// NumPy's .npy (NEP 1, versions 1 to 3) and ONNX's TensorProto (input_0.pb of
// test sets). What their first bytes say; who reads them opens the file.

#ifndef ACCEL_RT_TENSORFILEFORMAT_H
#define ACCEL_RT_TENSORFILEFORMAT_H

#include "accel-rt/Status.h"
#include "accel-rt/TensorFormat.h"

#include <string_view>

namespace accel::rt {

/// What such a file says of its tensor.
struct TensorHeader {
  std::string name; ///< A TensorProto's own, perhaps empty.
  DType dtype = DType::F32;
  std::vector<int64_t> shape, strides; ///< Strides in elements.
  uint64_t offset = 0;                 ///< Of its elements in the file.
};

/// The bytes of a tensor's elements. Nothing where a dimension is negative, or
/// where those that are not 0 alone make more than 2^56 bytes: strides of such
/// a shape cannot be computed with, though it may have no elements.
std::optional<uint64_t> tensorBytes(DType dtype,
                                    const std::vector<int64_t> &shape);

/// As many bytes of a .npy say how long its header is.
inline constexpr uint64_t kNpyStart = 12;

/// Where the elements of a .npy begin, by its first `kNpyStart` bytes, or all
/// of a shorter file. Fails where it is none, or its header is longer than the
/// file's `fileBytes` or 1 MiB.
Status findNpyElements(std::string_view start, uint64_t fileBytes,
                       uint64_t &offset);

/// Reads the header of a .npy of `fileBytes`. Requires `front` to be all that
/// stands before its elements. Refuses element types that are not numbers,
/// big-endian ones among them, and fewer elements than the shape has.
Status readNpyHeader(std::string_view front, uint64_t fileBytes,
                     TensorHeader &header);

/// The header of a .npy file for row-major elements; padded to 64 bytes.
std::string npyHeader(DType dtype, const std::vector<int64_t> &shape);

/// Reads a TensorProto that is all in memory. Raw data stay where they are;
/// typed data are decoded into `typed`, which is set then. Refuses fields it
/// does not know, external data and strings.
///
/// The wire format of this one message is decoded here: its definition is a
/// dozen fields that have been stable since 2017, while protobuf would bring
/// 3 MB, its own allocations and a code generator into a runtime that needs
/// none of them.
Status readTensorProto(std::string_view file, TensorHeader &header,
                       std::optional<std::vector<char>> &typed);

} // namespace accel::rt

#endif // ACCEL_RT_TENSORFILEFORMAT_H
