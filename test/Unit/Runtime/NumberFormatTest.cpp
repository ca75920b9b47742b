// The two ways to convert agree with each other and with what is said of each
// format elsewhere: test_formats.py holds the first against ml_dtypes.

#include "accel-rt/NumberFormat.h"

#include <gtest/gtest.h>

#include <random>

using namespace accel::rt;

namespace {

void expectSame(const NumberFormat &format, uint64_t code, uint64_t expected,
                double value) {
  bool bothNaN = (code & format.allOnes()) > format.largest() &&
                 std::isnan(decodeNumber(format, code)) &&
                 std::isnan(decodeNumber(format, expected));
  if (code != expected && !bothNaN)
    ADD_FAILURE() << format.name << " of " << value << ": expected code "
                  << expected << ", found " << code;
}

template <const NumberFormat &F> void checkWiden() {
  for (uint32_t code = 0; code < 1u << F.bits(); ++code) {
    double expected = decodeNumber(F, code);
    float found = widenNumber<F>(code);
    ASSERT_TRUE(std::isnan(expected) ? std::isnan(found) : found == expected)
        << F.name << " code " << code << ": " << found;
    ASSERT_EQ(std::signbit(found), std::signbit(expected)) << F.name << code;
  }
}

template <const NumberFormat &F> void checkNarrow(float value) {
  expectSame(F, narrowNumber<F>(value), encodeNumber(F, value), value);
  expectSame(F, narrowNumber<F, Overflow::Saturate>(value),
             encodeNumber(F, value, Overflow::Saturate), value);
}

template <const NumberFormat &F> void checkAll() {
  checkWiden<F>();
  // All numbers, those between two of them, and their neighbours.
  for (uint32_t code = 0; code + 1 < F.allOnes(); ++code) {
    auto low = static_cast<float>(decodeNumber(F, code)),
         high = static_cast<float>(decodeNumber(F, code + 1));
    float middle = low + (high - low) / 2;
    for (float value : {low, middle, std::nextafter(middle, high),
                        std::nextafter(middle, low)}) {
      checkNarrow<F>(value);
      checkNarrow<F>(-value);
    }
  }
  std::mt19937 random(7);
  for (int i = 0; i < 1000000; ++i)
    checkNarrow<F>(floatFromBits(static_cast<uint32_t>(random())));
}

} // namespace

TEST(NumberFormat, ConvertsByBitsAsByArithmetic) {
  checkAll<kF16>();
  checkAll<kBF16>();
  checkAll<kF8E4M3FN>();
  checkAll<kF8E5M2>();
  checkAll<kF6E2M3FN>();
  checkAll<kF6E3M2FN>();
  checkAll<kF4E2M1FN>();
}

TEST(NumberFormat, HasTheNumbersOfTheirPapers) {
  auto decode = [](const NumberFormat &format, uint64_t code) {
    return decodeNumber(format, code);
  };
  EXPECT_EQ(decode(kF8E4M3FN, kF8E4M3FN.largest()), 448);
  EXPECT_EQ(decode(kF8E4M3FN, 1), 0x1p-9);
  EXPECT_EQ(decode(kF8E5M2, kF8E5M2.largest()), 57344);
  EXPECT_EQ(decode(kF8E5M2, 1), 0x1p-16);
  EXPECT_EQ(decode(kF8E5M2, 0xFC), -INFINITY);
  EXPECT_EQ(decode(kF16, kF16.largest()), 65504);
  EXPECT_EQ(decode(kF4E2M1FN, 7), 6);
  EXPECT_EQ(decode(kF4E2M1FN, 9), -0.5);
  EXPECT_EQ(decode(kF6E2M3FN, kF6E2M3FN.largest()), 7.5);
  EXPECT_EQ(decode(kF6E3M2FN, kF6E3M2FN.largest()), 28);
  EXPECT_EQ(decode(kF8E4M3FNUZ, kF8E4M3FNUZ.largest()), 240);
  EXPECT_EQ(decode(kF8E5M2FNUZ, kF8E5M2FNUZ.largest()), 57344);
  // One zero, whose other code is NaN.
  for (const NumberFormat &format : {kF8E4M3FNUZ, kF8E5M2FNUZ}) {
    EXPECT_TRUE(std::isnan(decode(format, 0x80)));
    for (double zero : {0.0, -0.0, -0x1p-30})
      EXPECT_EQ(encodeNumber(format, zero), 0);
    EXPECT_EQ(encodeNumber(format, -INFINITY), 0x80);
    EXPECT_EQ(encodeNumber(format, NAN, Overflow::Saturate), 0x80);
    EXPECT_EQ(encodeNumber(format, -1e9, Overflow::Saturate), 0xFF);
  }
  EXPECT_EQ(decode(kF8E8M0FNU, 0), 0x1p-127);
  EXPECT_EQ(decode(kF8E8M0FNU, 254), 0x1p127);
  EXPECT_TRUE(std::isnan(decode(kF8E8M0FNU, 255)));
  // Transformer Engine's casts saturate (../shared/reference/PRECISION.md).
  struct {
    double value;
    uint64_t e4m3, e5m2;
  } casts[] = {{17, 0x58, 0x4C},       {18, 0x59, 0x4C},
               {19, 0x5A, 0x4D},       {465, 0x7E, 0x5F},
               {INFINITY, 0x7E, 0x7B}, {-0.0, 0x80, 0x80},
               {0x1p-10, 0, 0x14},     {3 * 0x1p-10, 0x02, 0x1A},
               {61440, 0x7E, 0x7B},    {-INFINITY, 0xFE, 0xFB},
               {0x1p-17, 0, 0},        {3 * 0x1p-17, 0, 0x02}};
  for (auto &[value, e4m3, e5m2] : casts) {
    EXPECT_EQ(encodeNumber(kF8E4M3FN, value, Overflow::Saturate), e4m3)
        << value;
    EXPECT_EQ(encodeNumber(kF8E5M2, value, Overflow::Saturate), e5m2) << value;
  }
  EXPECT_EQ(encodeNumber(kF8E4M3FN, 465), 0x7F);
  EXPECT_EQ(encodeNumber(kF8E5M2, 61440), 0x7C);
  // e8m0 has no zero and no signs, e2m1 nothing but numbers.
  for (double zero : {0.0, -0.0}) {
    EXPECT_EQ(encodeNumber(kF8E8M0FNU, zero), 255);
    EXPECT_EQ(encodeNumber(kF8E8M0FNU, zero, Overflow::Saturate), 0);
  }
  for (Overflow overflow : {Overflow::ToInfinity, Overflow::Saturate}) {
    EXPECT_EQ(encodeNumber(kF8E8M0FNU, -1, overflow), 255);
    EXPECT_EQ(encodeNumber(kF8E8M0FNU, NAN, overflow), 255);
    EXPECT_EQ(encodeNumber(kF8E8M0FNU, 0x1p-140, overflow), 0);
    EXPECT_EQ(encodeNumber(kF8E8M0FNU, 1.5, overflow), 128);
    EXPECT_EQ(encodeNumber(kF4E2M1FN, INFINITY, overflow), 7);
    EXPECT_EQ(encodeNumber(kF4E2M1FN, -7, overflow), 15);
    EXPECT_EQ(decodeNumber(kF4E2M1FN, encodeNumber(kF4E2M1FN, NAN, overflow)),
              0);
  }
  EXPECT_EQ(encodeNumber(kF8E8M0FNU, 0x1.8p127), 255);
  EXPECT_EQ(encodeNumber(kF8E8M0FNU, INFINITY, Overflow::Saturate), 254);
  // Ties of e2m1.
  const double ties[] = {.25, .75, 1.25, 1.75, 2.5, 3.5, 5},
               even[] = {0, 1, 1, 2, 2, 4, 4};
  for (int i = 0; i < 7; ++i)
    EXPECT_EQ(roundToNumber(kF4E2M1FN, ties[i]), even[i]);
}

TEST(NumberFormat, RoundsOnce) {
  // As f32 it would be a tie.
  EXPECT_EQ(roundToNumber(kBF16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(roundToNumber(kF16, 1 + 0x1p-11 - 0x1p-40), 1);
}
