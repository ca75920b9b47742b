// The cases and element types that the tests of attention and of its gradient
// share.

#ifndef ACCEL_TEST_UNIT_TARGET_ATTENTIONCASES_H
#define ACCEL_TEST_UNIT_TARGET_ATTENTIONCASES_H

#include "KernelHarness.h"

#include "Device/CPU/Gemm/AttentionGrad.h"

namespace accel::test {

/// Sizes and flags of an attention.
struct AttentionCase {
  int64_t batch, heads, groups, queries, keys, width;
  bool causal = false, zeroRows = false;
  char mask = 0; ///< 'f' added, 'i' lets through
};

template <typename T> struct Types;
template <> struct Types<float> {
  static constexpr const char *name = "f32";
  static constexpr rt::cpu::GemmType type = rt::cpu::GemmType::F32;
};
/// bf16 in memory.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(double value) { // cut off: the tests need no better
    auto narrow = static_cast<float>(value);
    uint32_t wide;
    std::memcpy(&wide, &narrow, 4);
    bits = wide >> 16;
  }
  operator double() const {
    uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
  }
};
template <> struct Types<BFloat16> {
  static constexpr const char *name = "bf16";
  static constexpr rt::cpu::GemmType type = rt::cpu::GemmType::BF16;
};
template <> struct Types<double> {
  static constexpr const char *name = "f64";
  static constexpr rt::cpu::GemmType type = rt::cpu::GemmType::F64;
};

inline const std::vector<AttentionCase> &attentionCases() {
  static const std::vector<AttentionCase> list = {
      {2, 4, 4, 37, 37, 16},
      {2, 4, 4, 37, 37, 16, true},
      {1, 4, 2, 20, 33, 8, true}, // past keys, grouped queries
      {1, 2, 1, 33, 20, 8, true}, // queries that see nothing
      {1, 2, 1, 33, 20, 8, true, true},
      {2, 2, 2, 17, 19, 8, false, false, 'f'},
      {2, 2, 2, 17, 19, 8, false, true, 'i'},
      {2, 2, 2, 17, 19, 8, true, false, 'i'},
      {1, 2, 2, 1, 40, 64, true},
  };
  return list;
}

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_TARGET_ATTENTIONCASES_H
