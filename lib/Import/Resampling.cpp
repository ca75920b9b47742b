// The coordinates and filters of the specification of Resize.

#include "Resampling.h"

#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace accel::import;

double accel::import::locate(const Resampling &method,
                             const ResampledAxis &axis, int64_t position) {
  StringRef name = method.transformation;
  double size = axis.scale * double(axis.from);
  auto shrink = [&](double x) { return x * axis.over / axis.of; };
  if (name == "asymmetric")
    return shrink(double(position));
  if (name == "align_corners")
    return size == 1 ? 0
                     : double(position) * double(axis.from - 1) / (size - 1);
  if (name == "tf_crop_and_resize") {
    double last = double(axis.from - 1), part = axis.end - axis.begin;
    return size == 1 ? (axis.begin + axis.end) * last / 2
                     : axis.begin * last +
                           double(position) * part * last / (size - 1);
  }
  if (name == "pytorch_half_pixel" && size == 1)
    return -0.5;
  double x = shrink(double(position) + 0.5) - 0.5;
  if (name == "half_pixel_symmetric")
    x += double(axis.from) / 2 * (1 - double(axis.to) / size);
  return x;
}

/// Keys, "Cubic convolution interpolation", 1981, with its parameter a.
static double cubicWeight(double a, double distance) {
  double x = std::abs(distance);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static int64_t roundNearest(const Resampling &method, double x) {
  double below = std::floor(x), part = x - below;
  if (method.nearest == "floor")
    return int64_t(below);
  if (method.nearest == "ceil")
    return int64_t(std::ceil(x));
  bool isUp = method.nearest == "round_prefer_ceil" ? part >= 0.5 : part > 0.5;
  return int64_t(below) + isUp;
}

Taps accel::import::findTaps(const Resampling &method,
                             const ResampledAxis &axis, double x) {
  Taps taps;
  auto clampTo = [&](int64_t position) {
    return std::clamp<int64_t>(position, 0, axis.from - 1);
  };
  if (method.mode == "nearest")
    return {{clampTo(roundNearest(method, x))}, {1}};
  bool isCubic = method.mode == "cubic";
  // A filter that shrinks is as much wider.
  double stretch = method.isAntialiased ? std::min(axis.scale, 1.0) : 1;
  auto reach = int64_t(-std::floor(-(isCubic ? 2 : 1) / stretch) - 1);
  auto left = int64_t(std::ceil(x)) - 1;
  double sum = 0;
  for (int64_t position = left - reach; position <= left + 1 + reach;
       ++position) {
    double distance = (double(position) - x) * stretch;
    double weight = isCubic ? cubicWeight(method.cubic, distance)
                            : std::max(0.0, 1 - std::abs(distance));
    bool isOutside = position < 0 || position >= axis.from;
    if (weight == 0 || (isOutside && method.isOutsideExcluded))
      continue;
    taps.positions.push_back(clampTo(position));
    taps.weights.push_back(weight);
    sum += weight;
  }
  if (taps.positions.empty())
    return {{0}, {0}};
  if (method.isAntialiased || method.isOutsideExcluded)
    for (double &weight : taps.weights)
      weight /= sum;
  return taps;
}
