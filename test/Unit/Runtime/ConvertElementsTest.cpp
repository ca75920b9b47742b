// Numbers of files in the types of programs: every value is kept, or refused.

#include "Data/ConvertElements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

using namespace accel::rt;

namespace {

/// `values` after a conversion in a buffer that has room for both.
template <class To, class From>
std::vector<To> convert(DType from, DType to, const std::vector<From> &values,
                        std::string *error = nullptr) {
  std::vector<char> buffer(values.size() * std::max(sizeof(From), sizeof(To)));
  std::memcpy(buffer.data(), values.data(), values.size() * sizeof(From));
  EXPECT_TRUE(canConvert(from, to));
  Status status = convertElements(from, to, buffer.data(),
                                  static_cast<int64_t>(values.size()));
  if (error)
    *error = status.ok() ? "" : status.message();
  else
    EXPECT_TRUE(status.ok());
  std::vector<To> found(values.size());
  std::memcpy(found.data(), buffer.data(), values.size() * sizeof(To));
  return found;
}

TEST(ConvertElements, WidensWholeNumbers) {
  EXPECT_EQ((convert<int64_t, int32_t>(DType::I32, DType::I64,
                                       {-100, 0, INT32_MAX, INT32_MIN})),
            (std::vector<int64_t>{-100, 0, INT32_MAX, INT32_MIN}));
  EXPECT_EQ((convert<int32_t, uint16_t>(DType::UI16, DType::I32, {0, 65535})),
            (std::vector<int32_t>{0, 65535}));
}

TEST(ConvertElements, NarrowsWholeNumbersThatFit) {
  std::string error;
  EXPECT_EQ((convert<int32_t, int64_t>(DType::I64, DType::I32,
                                       {-100, INT32_MIN, INT32_MAX, 7})),
            (std::vector<int32_t>{-100, INT32_MIN, INT32_MAX, 7}));
  convert<int32_t, int64_t>(DType::I64, DType::I32, {3, int64_t(1) << 31},
                            &error);
  EXPECT_EQ(error, "expected whole numbers that fit i32, found 2147483648");
  convert<uint64_t, int64_t>(DType::I64, DType::UI64, {-1}, &error);
  EXPECT_EQ(error, "expected whole numbers that fit ui64, found -1");
  convert<int64_t, uint64_t>(DType::UI64, DType::I64, {UINT64_MAX}, &error);
  EXPECT_EQ(error,
            "expected whole numbers that fit i64, found 18446744073709551615");
}

TEST(ConvertElements, KeepsTruthValues) {
  std::string error;
  EXPECT_EQ((convert<int64_t, uint8_t>(DType::I1, DType::I64, {0, 1})),
            (std::vector<int64_t>{0, 1}));
  EXPECT_EQ((convert<uint8_t, int64_t>(DType::I64, DType::I1, {1, 0})),
            (std::vector<uint8_t>{1, 0}));
  convert<uint8_t, int64_t>(DType::I64, DType::I1, {1, 2}, &error);
  EXPECT_EQ(error, "expected whole numbers that fit i1, found 2");
}

TEST(ConvertElements, WidensFloatingPoint) {
  // 1, -2, the smallest subnormal, the largest, infinity, minus zero.
  EXPECT_EQ((convert<float, uint16_t>(
                DType::F16, DType::F32,
                {0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0x8000})),
            (std::vector<float>{1, -2, 0x1p-24f, 65504, INFINITY, -0.0f}));
  EXPECT_EQ((convert<double, uint16_t>(DType::BF16, DType::F64,
                                       {0x3f80, 0xc000, 0x0001})),
            (std::vector<double>{1, -2, 0x1p-133}));
  EXPECT_EQ((convert<double, float>(DType::F32, DType::F64, {0.1f, -3})),
            (std::vector<double>{0.1f, -3}));
}

TEST(ConvertElements, RefusesWhatWouldRound) {
  for (auto [from, to] : {std::pair(DType::F64, DType::F32),
                          {DType::F32, DType::F16},
                          {DType::F16, DType::BF16},
                          {DType::I64, DType::F64},
                          {DType::F32, DType::I64},
                          {DType::I1, DType::F32}})
    EXPECT_FALSE(canConvert(from, to)) << dtypeName(from) << dtypeName(to);
}

/// `values` rounded in a buffer that has room for both.
template <class To, class From>
std::vector<To> roundAll(DType from, DType to,
                         const std::vector<From> &values) {
  std::vector<char> buffer(values.size() * std::max(sizeof(From), sizeof(To)));
  std::memcpy(buffer.data(), values.data(), values.size() * sizeof(From));
  roundElements(from, to, buffer.data(), static_cast<int64_t>(values.size()));
  std::vector<To> found(values.size());
  std::memcpy(found.data(), buffer.data(), values.size() * sizeof(To));
  return found;
}

TEST(ConvertElements, RoundsToNearestEven) {
  // Ties to either side, what is beyond the largest, the least, infinity.
  EXPECT_EQ((roundAll<uint16_t, float>(
                DType::F32, DType::BF16,
                {1 + 0x1p-8f, 1 + 0x3p-8f, 0x1.FFp127f, -0.0f, INFINITY})),
            (std::vector<uint16_t>{0x3f80, 0x3f82, 0x7f80, 0x8000, 0x7f80}));
  EXPECT_EQ((roundAll<uint16_t, float>(
                DType::F32, DType::F16,
                {1 + 0x1p-11f, 1 + 0x3p-11f, 65519, 65520, 0x1p-25f})),
            (std::vector<uint16_t>{0x3c00, 0x3c02, 0x7bff, 0x7c00, 0x0000}));
  EXPECT_TRUE(std::isnan(
      roundAll<float, double>(DType::F64, DType::F32, {NAN}).front()));
}

TEST(ConvertElements, RoundsOnce) {
  // By way of f32 these would be ties, and go down.
  EXPECT_EQ((roundAll<uint16_t, double>(DType::F64, DType::BF16,
                                        {1 + 0x1p-8 + 0x1p-40})),
            (std::vector<uint16_t>{0x3f81}));
  EXPECT_EQ((roundAll<uint16_t, double>(DType::F64, DType::F16,
                                        {1 + 0x1p-11 + 0x1p-40})),
            (std::vector<uint16_t>{0x3c01}));
}

TEST(ConvertElements, RoundsBetweenHalves) {
  EXPECT_EQ(
      (roundAll<uint16_t, uint16_t>(DType::BF16, DType::F16, {0x3f81, 0x7f00})),
      (std::vector<uint16_t>{0x3c08, 0x7c00}));
  EXPECT_EQ((roundAll<float, uint16_t>(DType::BF16, DType::F32, {0x3f81})),
            (std::vector<float>{1 + 0x1p-7f}));
}

} // namespace
