// Where the elements of a tensor are, and of which type, as files say it: what
// commands are described by.

#ifndef ACCEL_RT_TENSORFORMAT_H
#define ACCEL_RT_TENSORFORMAT_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace accel::rt {

/// Element types under their MLIR names (dtypeName); signless integers are
/// signed here, as ONNX's are.
enum class DType : uint8_t {
  I1,
  I8,
  I16,
  I32,
  I64,
  UI8,
  UI16,
  UI32,
  UI64, // clang-format off
  F16, BF16, F32, F64, F8E4M3FN, F8E5M2, F8E8M0FNU, F4E2M1FN, // clang-format on
  F8E4M3FNUZ,
  F8E5M2FNUZ,
  F6E2M3FN,
  F6E3M2FN,
  I4,
  I2,
  UI4,
  UI2
};
/// "f32" and so on; never null.
const char *dtypeName(DType dtype);
/// Bits of one element in ONNX's files, where bits of the next follow at once
/// (the low ones first), but for i1, which takes a byte.
int dtypeBits(DType dtype);
/// The type of an MLIR name; nullopt if there is none.
std::optional<DType> dtypeFromName(const std::string &name);
/// The name that safetensors files use: "F32", "I64", "BOOL". Numbers of less
/// than a byte have names of our own: in such files several share a byte
/// ("F4"), and nothing but sections of executables is written with ours.
const char *dtypeSafetensorsName(DType dtype);
/// The type of such a name in a file of others; nullopt if there is none.
std::optional<DType> dtypeFromSafetensors(const std::string &name);
/// The type of such a name in an executable; nullopt if there is none.
std::optional<DType> dtypeOfSection(const std::string &name);
/// Bytes of one element in memory; one of less than a byte takes one.
int64_t dtypeBytes(DType dtype);

/// Bytes between neighbouring coordinates of `axis`; "mb" is the micro-batch.
struct AxisStride {
  std::string axis;
  int64_t bytes = 0;
};

/// #plan.view: `buffer` is an index into Program::buffers, `strides` count
/// elements.
struct View {
  int64_t buffer = 0;
  int64_t offset = 0;
  std::vector<AxisStride> axes;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

/// #dist.interleaved: dimension `dim` is parts of `sizes`, so many `times`, in
/// files; in the order that is split the first of `by` shares of each part come
/// first.
struct Interleaved {
  int64_t dim = 0;
  std::vector<int64_t> sizes;
  int64_t by = 1, times = 1;

  bool operator==(const Interleaved &other) const {
    return dim == other.dim && sizes == other.sizes && by == other.by &&
           times == other.times;
  }
};

/// #plan.part: the logical shape and, per dimension, the axes that split it,
/// major to minor.
struct Part {
  std::vector<int64_t> shape;
  std::vector<std::vector<std::string>> axes;
  std::optional<Interleaved> interleaved = std::nullopt;
};

/// A value of a `form` dictionary: what the target chose at compile time.
using FormValue =
    std::variant<int64_t, double, std::string, std::vector<int64_t>>;
using Form = std::map<std::string, FormValue>;

} // namespace accel::rt

#endif // ACCEL_RT_TENSORFORMAT_H
