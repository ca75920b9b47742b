// Sums of 16-bit floats, as ranks send gradients: terms are added in f32, from
// left to right, and the sum is rounded once, to nearest, ties to even.

#include "Comm/Reduce.h"

#include "gmock/gmock.h"

using namespace accel::rt;
using testing::ElementsAre;

namespace {

/// The sums of the ranks' tensors, given and returned as bits.
std::vector<uint16_t> add(DType dtype,
                          std::vector<std::vector<uint16_t>> ranks) {
  int64_t size = static_cast<int64_t>(ranks[0].size());
  std::vector<uint16_t> sums(ranks[0].size());
  std::vector<const void *> sources;
  for (const std::vector<uint16_t> &each : ranks)
    sources.push_back(each.data());
  reduceElements(PairLayout({size}, {1}, {1}), dtype, Combine::Sum, sums.data(),
                 sources.data(), sources.size(), 0, size);
  return sums;
}

// 1 and twice half a step: rounded after each addition it would stay 1. Three
// halves of the last digit: a tie that goes up to even. The smallest numbers.
TEST(ReduceTest, RoundsHalvesOnce) {
  EXPECT_THAT(
      add(DType::F16,
          {{0x3c00, 0x3c00, 0x0001}, {0x1000, 0x1600, 0x0001}, {0x1000, 0, 0}}),
      ElementsAre(0x3c01, 0x3c02, 0x0002));
}

// What is too large only on the way comes back; what is too large is infinite.
TEST(ReduceTest, AddsHalvesInALargerRange) {
  EXPECT_THAT(
      add(DType::F16, {{0x7bff, 0x7bff}, {0x7bff, 0x7bff}, {0xfbff, 0}}),
      ElementsAre(0x7bff, 0x7c00));
}

TEST(ReduceTest, RoundsBFloatsOnce) {
  EXPECT_THAT(
      add(DType::BF16, {{0x3f80, 0x3f80}, {0x3b80, 0x3c40}, {0x3b80, 0}}),
      ElementsAre(0x3f81, 0x3f82));
}

} // namespace
