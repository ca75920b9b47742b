// What docs/Numerics.md promises of each elementwise function and its gradient,
// one row each: the function, its exact value and slope, how far the kernels
// may be from them, and why where that is more than four units in the last
// place.

#ifndef ACCEL_TEST_UNIT_TARGET_ACCURACYCASES_H
#define ACCEL_TEST_UNIT_TARGET_ACCURACYCASES_H

#include <cmath>
#include <limits>
#include <vector>

namespace accel::test {

/// |found - exact| <= ulps · ulp(exact) + absolute, in f32; bf16 adds the half
/// unit that it is rounded with.
struct Bound {
  double ulps = 0.5, absolute = 0;
  const char *why = nullptr; ///< required beyond 4 ulps, or with `absolute`
};

/// A point where the kernels must give exactly this.
struct Limit {
  double x, value, slope;
};

using Exact = double (*)(double x, double y);

struct AccuracyCase {
  const char *name;
  const char *body; ///< ops on %x and %y of type T, the last of which is %r
  bool binary;
  Exact value;
  Bound bound;
  /// By x, and for functions of two by y. Held over all exponents for functions
  /// of one; for those of two between 2^-16 and 2^16, beyond which products and
  /// quotients of the rule may over- and underflow by themselves.
  Exact slope;
  Bound slopeBound;
  Exact slopeY = nullptr;
  Bound slopeBoundY = {};
  std::vector<Limit> limits = {};
};

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The functions in float64, in forms that do not cancel.
inline double sigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }
inline double softplusOf(double x) {
  return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
}
inline double cubicOf(double x) { // 2 √(2/π) (x + 0.044715 x³)
  return 2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}
inline double floorPower2Of(double x) {
  int exponent = 0;
  double fraction = std::frexp(x, &exponent); // of magnitude [0.5, 1)
  return x == 0 || !std::isfinite(x)
             ? x
             : std::ldexp(fraction < 0 ? -0.5 : 0.5, exponent);
}
inline double geluTanhSlope(double x) {
  if (std::fabs(x) > 100)
    return std::isinf(x) ? kNaN : x > 0;
  double v = cubicOf(x), p = sigmoidOf(v), q = sigmoidOf(-v);
  return p + x * p * q * 2 * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}
inline double geluErfSlope(double x) {
  double bell = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
  return std::erfc(-x * M_SQRT1_2) / 2 + x * bell;
}
inline double siluSlope(double x) {
  return sigmoidOf(x) + x * sigmoidOf(x) * sigmoidOf(-x);
}

#define CALL(op) "%r = nn." op " %x : T"
#define CALL2(op) "%r = nn." op " %x, %y : T"
#define POWER(n) "%n = nn.constant dense<" n "> : T %r = nn.pow %x, %n : T"
/// log(1 + exp(-|x|)) after the op `extreme` of x and 0, joined by `sum`.
#define SOFT(extreme, sum)                                                     \
  "%z = nn.constant dense<0.0> : T %a = nn.abs %x : T %b = nn.neg "            \
  "%a : T %e = nn.exp %b : T %t = nn.log1p %e : T %m = "                       \
  "nn." extreme " %x, %z : T %r = nn." sum " %m, %t : T"
#define X [](double x, double) -> double
#define Y [](double, double y) -> double
#define XY [](double x, double y) -> double

inline constexpr double kSmall = 0x1p-126;
inline constexpr const char *kFlushed =
    "what is below the smallest normal number may be 0";
inline constexpr const char *kOfResult =
    "1 - y of the rounded result y, as in PyTorch";
inline constexpr const char *kTail = "1 + y of a y near -1, as in PyTorch";

inline const std::vector<AccuracyCase> &accuracyCases() {
  // clang-format off
  static const std::vector<AccuracyCase> cases = {
    {"neg", CALL("neg"), false, X { return -x; }, {0}, X { return -1; }, {0}},
    {"abs", CALL("abs"), false, X { return std::fabs(x); }, {0},
     X { return x > 0 ? 1 : x < 0 ? -1 : 0; }, {0}},
    {"exp", CALL("exp"), false,
     X { return std::exp(x); }, {1, kSmall, kFlushed},
     X { return std::exp(x); }, {1, kSmall, kFlushed}, nullptr, {},
     {{-1000, 0, 0}, {-kInfinity, 0, 0}, {0, 1, 1}, {89, kInfinity, kInfinity}}},
    {"log", CALL("log"), false,
     X { return std::log(x); }, {1},
     X { return 1 / x; }, {0.5}, nullptr, {},
     {{0, -kInfinity, kInfinity}, {1, 0, 1}, {kInfinity, kInfinity, 0}}},
    {"log1p", CALL("log1p"), false,
     X { return std::log1p(x); }, {1.5},
     X { return 1 / (1 + x); }, {1.5}, nullptr, {},
     {{-1, -kInfinity, kInfinity}, {0, 0, 1}, {0x1p-60, 0x1p-60, 1}, {kInfinity, kInfinity, 0}}},
    {"sqrt", CALL("sqrt"), false,
     X { return std::sqrt(x); }, {0.5},
     X { return 0.5 / std::sqrt(x); }, {1.5}, nullptr, {},
     {{0, 0, kInfinity}, {kInfinity, kInfinity, 0}}},
    {"rsqrt", CALL("rsqrt"), false,
     X { return 1 / std::sqrt(x); }, {1.5},
     X { return -0.5 / std::sqrt(x) / x; }, {2, kSmall, kFlushed}, nullptr, {},
     {{0, kInfinity, -kInfinity}, {kInfinity, 0, 0}}},
    {"reciprocal", CALL("reciprocal"), false,
     X { return 1 / x; }, {0.5},
     X { return -1 / x / x; }, {2, kSmall, kFlushed}, nullptr, {},
     {{0, kInfinity, -kInfinity}, {kInfinity, 0, 0}}},
    {"tanh", CALL("tanh"), false,
     X { return std::tanh(x); }, {1.5},
     X { return 1 / std::cosh(x) / std::cosh(x); }, {1, 0x1p-22, kOfResult}, nullptr, {},
     {{10, 1, 0}, {-10, -1, 0}, {1e30, 1, 0}, {kInfinity, 1, 0}, {-kInfinity, -1, 0}, {0, 0, 1}}},
    {"erf", CALL("erf"), false,
     X { return std::erf(x); }, {1},
     X { return 2 / std::sqrt(M_PI) * std::exp(-x * x); },
     {64, 0x1p-125, "the rounding of x², times x²"}, nullptr, {},
     {{20, 1, 0}, {1e30, 1, 0}, {-1e30, -1, 0}, {kInfinity, 1, 0}, {-kInfinity, -1, 0}}},
    {"sigmoid", CALL("sigmoid"), false,
     X { return sigmoidOf(x); }, {2, kSmall, kFlushed},
     X { return sigmoidOf(x) * sigmoidOf(-x); }, {1, 0x1p-23, kOfResult}, nullptr, {},
     {{0, 0.5, 0.25}, {100, 1, 0}, {-1000, 0, 0}, {kInfinity, 1, 0}, {-kInfinity, 0, 0}}},
    {"relu", CALL("relu"), false, X { return x < 0 ? 0 : x; }, {0},
     X { return x > 0; }, {0}, nullptr, {}, {{0, 0, 0}, {1, 1, 1}}},
    {"sin", CALL("sin"), false, X { return std::sin(x); }, {1}, X { return std::cos(x); }, {1}},
    {"cos", CALL("cos"), false, X { return std::cos(x); }, {1}, X { return -std::sin(x); }, {1}},
    {"atan", CALL("atan"), false, X { return std::atan(x); }, {1}, X { return 1 / (1 + x * x); },
     {2, kSmall, kFlushed}},
    {"floor", CALL("floor"), false, X { return std::floor(x); }, {0}, X { return 0; }, {0}},
    {"round", CALL("round"), false, X { return std::isinf(x) ? x : x - std::remainder(x, 1); }, {0}, X { return 0; }, {0},
     nullptr, {}, {{0.5, 0, 0}, {1.5, 2, 0}, {2.5, 2, 0}, {-2.5, -2, 0}, {0x1p30, 0x1p30, 0}}},
    {"floor_power2", CALL("floor_power2"), false, X { return floorPower2Of(x); }, {0}, X { return 0; }, {0},
     nullptr, {}, {{3, 2, 0}, {4, 4, 0}, {-0.75, -0.5, 0}, {0x1.8p-140, 0x1p-140, 0}}},
    {"gelu_tanh", CALL("gelu tanh"), false,
     X { return x == kInfinity ? x : x * sigmoidOf(cubicOf(x)); }, {1, 0x1p-22, kTail},
     X { return geluTanhSlope(x); }, {1, 0x1p-22, kTail}, nullptr, {},
     {{-30, 0, 0}, {-100, 0, 0}, {-1e30, 0, 0}, {0, 0, 0.5}, {30, 30, 1}, {100, 100, 1},
      {1000, 1000, 1}, {0x1p100, 0x1p100, 1}}},
    {"gelu_erf", CALL("gelu erf"), false,
     X { return x * (std::erfc(-x * M_SQRT1_2) / 2); }, {1, 0x1p-22, kTail},
     X { return std::isinf(x) ? kNaN : geluErfSlope(x); }, {1, 0x1p-22, kTail}, nullptr, {},
     {{-30, 0, 0}, {-1e30, 0, 0}, {0, 0, 0.5}, {100, 100, 1}, {0x1p100, 0x1p100, 1}}},
    {"silu", "%s = nn.sigmoid %x : T %r = nn.mul %x, %s : T", false,
     X { return x * sigmoidOf(x); }, {2.5, 0x1p-118, "a flushed sigmoid, times x"},
     X { return std::isinf(x) ? kNaN : siluSlope(x); },
     {1, 0x1p-19, "1 - y of the rounded sigmoid y, times x, as in PyTorch"}, nullptr, {},
     {{-1000, 0, 0}, {0, 0, 0.5}, {100, 100, 1}}},
    {"softplus", SOFT("max", "add"), false,
     X { return softplusOf(x); }, {2, kSmall, kFlushed},
     X { return sigmoidOf(x); }, {2.5, kSmall, kFlushed}, nullptr, {},
     {{-1000, 0, 0}, {0, M_LN2, 0.5}, {1000, 1000, 1}, {kInfinity, kInfinity, 1}, {-kInfinity, 0, 0}}},
    {"logsigmoid", SOFT("min", "sub"), false,
     X { return -softplusOf(-x); }, {2, kSmall, kFlushed},
     X { return sigmoidOf(-x); }, {2.5, kSmall, kFlushed}, nullptr, {},
     {{-1000, -1000, 1}, {0, -M_LN2, 0.5}, {1000, 0, 0}, {kInfinity, 0, 0}, {-kInfinity, -kInfinity, 1}}},
    {"power_half", POWER("0.5"), false,
     X { return std::sqrt(x); }, {0.5},
     X { return 0.5 * std::pow(x, -0.5); }, {1}, nullptr, {}, {{0, 0, kInfinity}}},
    {"power_3", POWER("3.0"), false,
     X { return x * x * x; }, {1.5, kSmall, kFlushed},
     X { return 3 * x * x; }, {1.5, kSmall, kFlushed}, nullptr, {}, {{0, 0, 0}}},
    {"power_two_and_a_half", POWER("2.5"), false,
     X { return std::pow(x, 2.5); }, {1},
     X { return 2.5 * std::pow(x, 1.5); }, {1.5, 0x1p-147, "denormal numbers are rounded twice"},
     nullptr, {}, {{0, 0, 0}}},
    {"add", CALL2("add"), true, XY { return x + y; }, {0.5},
     X { return 1; }, {0}, X { return 1; }, {0}},
    {"sub", CALL2("sub"), true, XY { return x - y; }, {0.5},
     X { return 1; }, {0}, X { return -1; }, {0}},
    {"mul", CALL2("mul"), true, XY { return x * y; }, {0.5},
     Y { return y; }, {0}, X { return x; }, {0}},
    {"div", CALL2("div"), true, XY { return x / y; }, {0.5},
     Y { return 1 / y; }, {0.5}, XY { return -x / y / y; }, {2}},
    {"mod", CALL2("mod"), true, XY { return std::fmod(x, y); }, {0},
     X { return 1; }, {0}, XY { return -(x - std::fmod(x, y)) / y; }, {1.5}},
    {"min", CALL2("min"), true,
     XY { return std::isnan(x) || std::isnan(y) ? kNaN : std::fmin(x, y); }, {0},
     XY { return x < y ? 1 : x == y ? 0.5 : 0; }, {0},
     XY { return y < x ? 1 : x == y ? 0.5 : 0; }, {0}},
    {"max", CALL2("max"), true,
     XY { return std::isnan(x) || std::isnan(y) ? kNaN : std::fmax(x, y); }, {0},
     XY { return x > y ? 1 : x == y ? 0.5 : 0; }, {0},
     XY { return y > x ? 1 : x == y ? 0.5 : 0; }, {0}},
    // By y: of the rounded result, which may be infinite by itself.
    {"pow", CALL2("pow"), true, XY { return std::pow(x, y); }, {1},
     XY { return y * std::pow(x, y - 1); },
     {90, kSmall, "y - 1 is rounded, and then times the logarithm of x"},
     XY { return double(float(std::pow(x, y))) * std::log(x); }, {3, kSmall, kFlushed}},
  };
// clang-format on
return cases;
}
#undef CALL
#undef CALL2
#undef POWER
#undef SOFT
#undef X
#undef Y
#undef XY

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_TARGET_ACCURACYCASES_H
