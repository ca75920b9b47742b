// The tables of element types, command names and the hash: the small facts that
// both sides of the file format share.

#include "Format/Describe.h"

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace accel::rt {
namespace {
struct DTypeRow {
  const char *name, *safetensors;
  int64_t bytes;
  int bits = 0; ///< of less than a byte
};
// In the order of DType.
constexpr DTypeRow kDTypes[] = {{"i1", "BOOL", 1},
                                {"i8", "I8", 1},
                                {"i16", "I16", 2},
                                {"i32", "I32", 4},
                                {"i64", "I64", 8},
                                {"ui8", "U8", 1},
                                {"ui16", "U16", 2},
                                {"ui32", "U32", 4},
                                {"ui64", "U64", 8},
                                {"f16", "F16", 2},
                                {"bf16", "BF16", 2},
                                {"f32", "F32", 4},
                                {"f64", "F64", 8},
                                {"f8E4M3FN", "F8_E4M3", 1},
                                {"f8E5M2", "F8_E5M2", 1},
                                {"f8E8M0FNU", "F8_E8M0", 1},
                                {"f4E2M1FN", "F4_E2M1_BYTES", 1, 4},
                                {"f8E4M3FNUZ", "F8_E4M3FNUZ", 1},
                                {"f8E5M2FNUZ", "F8_E5M2FNUZ", 1},
                                {"f6E2M3FN", "F6_E2M3_BYTES", 1, 6},
                                {"f6E3M2FN", "F6_E3M2_BYTES", 1, 6},
                                {"i4", "I4_BYTES", 1, 4},
                                {"i2", "I2_BYTES", 1, 2},
                                {"ui4", "U4_BYTES", 1, 4},
                                {"ui2", "U2_BYTES", 1, 2}};
} // namespace

const char *dtypeName(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)].name;
}

const char *dtypeSafetensorsName(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)].safetensors;
}

int64_t dtypeBytes(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)].bytes;
}

int dtypeBits(DType dtype) {
  const DTypeRow &row = kDTypes[static_cast<size_t>(dtype)];
  return row.bits ? row.bits : static_cast<int>(row.bytes) * 8;
}

std::optional<DType> dtypeFromName(const std::string &name) {
  for (size_t i = 0; i < std::size(kDTypes); ++i)
    if (name == kDTypes[i].name)
      return static_cast<DType>(i);
  return std::nullopt;
}

std::optional<DType> dtypeOfSection(const std::string &name) {
  for (size_t i = 0; i < std::size(kDTypes); ++i)
    if (name == kDTypes[i].safetensors)
      return static_cast<DType>(i);
  return std::nullopt;
}

std::optional<DType> dtypeFromSafetensors(const std::string &name) {
  std::optional<DType> dtype = dtypeOfSection(name);
  return dtype && dtypeBits(*dtype) < 8 ? std::nullopt : dtype;
}

const char *commandKind(const Command &command) {
  return format::kCommandKinds[command.what.index()];
}

int64_t Executable::numRanks() const {
  int64_t ranks = 1;
  for (const Axis &axis : mesh)
    ranks *= axis.size;
  return ranks;
}

bool Executable::hasEntry(const std::string &name) const {
  return std::any_of(programs.begin(), programs.end(), [&](auto &program) {
    return std::any_of(program.entries.begin(), program.entries.end(),
                       [&](auto &entry) { return entry.name == name; });
  });
}

size_t Executable::placeOfReport(std::string_view name) const {
  size_t place = 0;
  while (place < reports.size() && reports[place].name != name)
    ++place;
  return place;
}

uint64_t hashBytes(const void *data, uint64_t bytes) {
  return XXH3_64bits(data, bytes);
}

} // namespace accel::rt
