// The cases and element types that the tests of attention and of its gradient
// share.

#ifndef ACCEL_TEST_UNIT_TARGET_ATTENTIONCASES_H
#define ACCEL_TEST_UNIT_TARGET_ATTENTIONCASES_H

#include "KernelHarness.h"

#include "Device/CPU/Gemm/AttentionGrad.h"
#include "accel-rt/NumberFormat.h"

namespace accel::test {

/// Sizes and flags of an attention.
struct AttentionCase {
  int64_t batch, heads, groups, queries, keys, width;
  bool causal = false, zeroRows = false;
  /// 'i' lets through; 'f' is added, 'l' too: the most negative number where it
  /// hides a whole row; 'c' as well, and scores are counted from levels.
  char mask = 0;
  int64_t rowOffset = 0, columnOffset = 0;

  bool isAdded() const { return mask == 'f' || mask == 'l' || mask == 'c'; }
  int64_t maskColumns() const { return keys + (mask == 'c' ? 1 : 0); }
  /// The largest number of a row that is added, if it is counted from that.
  float getLevel(const float *row) const {
    return mask == 'c' ? *std::max_element(row, row + keys) : 0;
  }
  /// What is added, each row behind its level if there are levels.
  std::vector<float> addLevels(const std::vector<float> &added) const {
    std::vector<float> all;
    for (size_t row = 0; row < added.size(); row += keys) {
      if (mask == 'c')
        all.push_back(getLevel(&added[row]));
      all.insert(all.end(), &added[row], &added[row] + keys);
    }
    return all;
  }
  /// What hides the first query from all keys.
  float farDown() const {
    return mask == 'l' || mask == 'c' ? std::numeric_limits<float>::lowest()
                                      : -std::numeric_limits<float>::infinity();
  }
  bool hides(int64_t s, int64_t t) const {
    return causal && t + columnOffset > s + rowOffset;
  }
  /// As the attributes of a command.
  std::string attributes() const {
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << (causal ? "causal " : "") << (zeroRows ? "zero_masked_rows " : "")
           << "row_offset " << rowOffset << " column_offset " << columnOffset;
    return text;
  }
};

template <typename T> struct Types;
template <> struct Types<float> {
  using Sum = float; ///< of scores, and their log-sum-exp
  static constexpr const char *name = "f32", *sum = "f32";
  static constexpr rt::cpu::GemmType type = rt::cpu::GemmType::F32;
};
/// A float of 16 bits in memory.
template <const rt::NumberFormat &F> struct Half {
  uint16_t code = 0;
  Half() = default;
  Half(double value) : code(rt::encodeNumber(F, value)) {}
  operator double() const { return rt::decodeNumber(F, code); }
};
using BFloat16 = Half<rt::kBF16>;
using Float16 = Half<rt::kF16>;
template <> struct Types<BFloat16> {
  using Sum = float;
  static constexpr const char *name = "bf16", *sum = "f32";
  static constexpr rt::cpu::GemmType type = rt::cpu::GemmType::BF16;
};
template <> struct Types<Float16> {
  using Sum = float;
  static constexpr const char *name = "f16", *sum = "f32";
  static constexpr rt::cpu::GemmType type = rt::cpu::GemmType::F16;
};
template <> struct Types<double> {
  using Sum = double;
  static constexpr const char *name = "f64", *sum = "f64";
  static constexpr rt::cpu::GemmType type = rt::cpu::GemmType::F64;
};

inline const std::vector<AttentionCase> &attentionCases() {
  static const std::vector<AttentionCase> list = {
      {2, 4, 4, 37, 37, 16},
      {2, 4, 4, 37, 37, 16, true},
      // Past keys, grouped queries.
      {1, 4, 2, 20, 33, 8, true, false, 0, 13},
      // Queries that see nothing.
      {1, 2, 1, 33, 20, 8, true, false, 0, 0, 13},
      {1, 2, 1, 33, 20, 8, true, true, 0, 0, 13},
      // Rectangles of a larger triangle: across it, above it, below it.
      {1, 2, 2, 24, 20, 8, true, true, 0, 48, 50},
      {1, 2, 2, 24, 20, 8, true, true, 0, 24, 48},
      {1, 2, 2, 24, 20, 8, true, true, 0, 48, 20},
      {2, 2, 2, 17, 19, 8, false, false, 'f'},
      {2, 2, 2, 17, 19, 8, false, false, 'l'},
      {2, 2, 2, 17, 19, 8, false, false, 'c'},
      {2, 2, 2, 17, 19, 8, false, true, 'i'},
      {2, 2, 2, 17, 19, 8, true, false, 'i', 2},
      {1, 2, 2, 1, 40, 64, true, false, 0, 39},
  };
  return list;
}

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_TARGET_ATTENTIONCASES_H
