// The map is made as the published one is, each operation rounded to float32,
// so that it is the same to the last bit.

#include "dialects/NN/DynamicMap.h"

#include <algorithm>
#include <cmath>

using namespace accel;

static constexpr int kDecades = 7;

/// An operation of float32, whatever the host computes in.
static float round32(double exact) { return static_cast<float>(exact); }

/// Element `index` of `count` that divide [0.1, 1] evenly, ends included:
/// counted from the nearer end, and rounded once, as torch.linspace does where
/// the CPU has fused multiplication and addition.
static float divide(int index, int count) {
  float first = 0.1F, last = 1.0F;
  float step = round32(round32(double(last) - first) / double(count - 1));
  if (index < count / 2)
    return round32(first + double(step) * index);
  return round32(last - double(step) * (count - 1 - index));
}

static std::array<float, 256> makeMap(bool isSigned) {
  std::array<float, 256> map{};
  size_t filled = 0;
  for (int decade = 0; decade < kDecades; ++decade) {
    int parts = 1 << (isSigned ? decade : decade + 1);
    float scale = round32(std::pow(10.0, decade - (kDecades - 1)));
    for (int part = 0; part < parts; ++part) {
      float sum = round32(double(divide(part, parts + 1)) +
                          divide(part + 1, parts + 1));
      float number = round32(double(scale) * (sum / 2));
      map[filled++] = number;
      if (isSigned)
        map[filled++] = -number;
    }
  }
  map[filled++] = 0;
  map[filled++] = 1;
  std::sort(map.begin(), map.end());
  return map;
}

static std::array<float, 255> makeBounds(const std::array<float, 256> &map) {
  std::array<float, 255> bounds{};
  for (size_t index = 0; index < bounds.size(); ++index)
    bounds[index] = round32(double(map[index]) + map[index + 1]) / 2;
  return bounds;
}

const std::array<float, 256> &nn::getDynamicMap(bool isSigned) {
  static const std::array<float, 256> maps[] = {makeMap(false), makeMap(true)};
  return maps[isSigned];
}

const std::array<float, 255> &nn::getDynamicBounds(bool isSigned) {
  static const std::array<float, 255> bounds[] = {
      makeBounds(getDynamicMap(false)), makeBounds(getDynamicMap(true))};
  return bounds[isSigned];
}
