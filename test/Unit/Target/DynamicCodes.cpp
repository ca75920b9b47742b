// Codes of 8 bits: the kernel's search by leading bits, and the evaluator's,
// against the nearest number by definition, on both sides of every bound.

#include "KernelHarness.h"

#include "dialects/NN/DynamicMap.h"
#include <cmath>

using namespace accel;
using namespace accel::test;

namespace {
/// The nearest number's place; of two as near, by the float32 between them, the
/// lower one.
int nearest(double x, bool isSigned) {
  const auto &map = nn::getDynamicMap(isSigned);
  int code = 0;
  while (code < 255 && x > double((map[code] + map[code + 1]) / 2))
    ++code;
  return code;
}

/// Bounds, what is next to them, numbers of all magnitudes, and what is beyond.
template <typename T> std::vector<T> samples(bool isSigned) {
  const T infinity = std::numeric_limits<T>::infinity();
  std::vector<T> x = {0,
                      T(-0.0),
                      1,
                      -1,
                      2,
                      -2,
                      infinity,
                      -infinity,
                      1e-30,
                      T(-1e-30),
                      std::numeric_limits<T>::denorm_min()};
  for (float bound : nn::getDynamicBounds(isSigned))
    for (T at : {T(bound), T(-bound)}) {
      x.push_back(at);
      x.push_back(std::nextafter(at, infinity));
      x.push_back(std::nextafter(at, -infinity));
    }
  for (int i = 0; i < 20000; ++i) {
    T size = std::pow(T(10), -T(8.5) * T(i) / 20000);
    x.push_back(size);
    x.push_back(-size);
  }
  x.resize((x.size() + 255) / 256 * 256);
  return x;
}

template <typename T> void checkEncode(const std::string &type) {
  for (bool isSigned : {false, true}) {
    std::vector<T> x = samples<T>(isSigned);
    std::string shape = std::to_string(x.size() / 256) + "x256x";
    std::string from = "tensor<" + shape + type + ">",
                to = "tensor<" + shape + "ui8>";
    Kernel kernel("func.func private @k(%x: " + from + ") -> " + to +
                  " attributes {plan.kernel, plan.rows = " +
                  std::to_string(x.size() / 256) +
                  " : i64} { %c = nn.dynamic_encode %x" +
                  (isSigned ? " {is_signed}" : "") + " : (" + from + ") -> " +
                  to + " return %c : " + to + " }");
    std::vector<uint8_t> codes(x.size());
    EXPECT_EQ(kernel({x.data(), codes.data()}), 0);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(int(codes[i]), nearest(double(x[i]), isSigned))
          << x[i] << (isSigned ? " signed" : "");
  }
}

TEST(DynamicCodes, KernelsFindTheNearest) {
  checkEncode<float>("f32");
  checkEncode<double>("f64");
}

TEST(DynamicCodes, KernelsReadTheMap) {
  for (bool isSigned : {false, true}) {
    std::string words = isSigned ? " {is_signed}" : "";
    Kernel kernel(
        "func.func private @k(%c: tensor<256xui8>) -> (tensor<256xf32>, "
        "tensor<256xf64>) attributes {plan.kernel, plan.rows = 1 : i64} { "
        "%x = nn.dynamic_decode %c" +
        words +
        " : (tensor<256xui8>) -> tensor<256xf32> %y = nn.dynamic_decode %c" +
        words +
        " : (tensor<256xui8>) -> tensor<256xf64> return %x, %y : "
        "tensor<256xf32>, tensor<256xf64> }");
    std::vector<uint8_t> codes(256);
    std::vector<float> x(256);
    std::vector<double> y(256);
    for (int i = 0; i < 256; ++i)
      codes[i] = static_cast<uint8_t>(255 - i);
    EXPECT_EQ(kernel({codes.data(), x.data(), y.data()}), 0);
    const auto &map = nn::getDynamicMap(isSigned);
    for (int i = 0; i < 256; ++i) {
      EXPECT_EQ(x[i], map[255 - i]);
      EXPECT_EQ(y[i], double(map[255 - i]));
      EXPECT_EQ(nearest(x[i], isSigned), 255 - i);
    }
  }
}

/// Some of the published numbers, and what all of them have.
TEST(DynamicCodes, MapIsThePublishedOne) {
  const auto &signedMap = nn::getDynamicMap(true),
             &unsignedMap = nn::getDynamicMap(false);
  EXPECT_EQ(signedMap[0], -0x1.fc6666p-1F);
  EXPECT_EQ(signedMap[127], 0);
  EXPECT_EQ(signedMap[128], 0x1.27476ep-21F);
  EXPECT_EQ(signedMap[255], 1);
  EXPECT_EQ(unsignedMap[0], 0);
  EXPECT_EQ(unsignedMap[1], 0x1.5cf754p-22F);
  EXPECT_EQ(unsignedMap[254], 0x1.fe3334p-1F);
  EXPECT_EQ(unsignedMap[255], 1);
  for (int i = 0; i < 127; ++i)
    EXPECT_EQ(signedMap[i], -signedMap[254 - i]);
  for (const auto *map : {&signedMap, &unsignedMap})
    EXPECT_TRUE(std::is_sorted(map->begin(), map->end()));
}
} // namespace
