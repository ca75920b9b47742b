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

} // namespace
