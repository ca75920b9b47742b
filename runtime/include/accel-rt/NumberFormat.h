// The table of floating-point formats: what evaluator, kernels, runtime and
// files know of each. Conversions round to nearest, ties to even (IEEE 754),
// once; what they do beyond the largest number is said at each.
//
// f8E4M3FN and f8E5M2: Micikevicius et al., FP8 Formats for Deep Learning,
// arXiv:2209.05433. f8E8M0FNU, f6 and f4: OCP Microscaling Formats (MX)
// Specification 1.0. FNUZ: Noune et al., 8-bit Numerical Formats for Deep
// Neural Networks, arXiv:2206.02915.

#ifndef ACCEL_RT_NUMBERFORMAT_H
#define ACCEL_RT_NUMBERFORMAT_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace accel::rt {

/// A binary format: a sign, an exponent, a fraction; beside zero and subnormal
/// numbers, where `hasZero`, as in IEEE 754. Codes of magnitudes grow with
/// them.
struct NumberFormat {
  /// What stands above the largest finite number.
  enum class Top {
    InfinityAndNaN, ///< the whole last exponent, as in IEEE 754
    NaN,            ///< one code alone, of all ones
    MinusZero,      ///< nothing; NaN has the code of minus zero, which is none
    Nothing,
  };

  const char *name; ///< MLIR's
  int exponentBits, fractionBits, bias;
  Top top;
  bool isSigned = true, hasZero = true;

  constexpr int magnitudeBits() const { return exponentBits + fractionBits; }
  constexpr int bits() const { return magnitudeBits() + isSigned; }
  constexpr int bytes() const { return (bits() + 7) / 8; }
  /// Significant bits of a normal number.
  constexpr int digits() const { return fractionBits + 1; }
  constexpr uint64_t signBit() const {
    return isSigned ? uint64_t(1) << magnitudeBits() : 0;
  }
  constexpr uint64_t allOnes() const {
    return (uint64_t(1) << magnitudeBits()) - 1;
  }
  /// Codes of magnitudes: of infinity, requires that there is one; of a quiet
  /// NaN, or of zero in a format without; of the largest finite number.
  constexpr uint64_t infinity() const {
    return ((uint64_t(1) << exponentBits) - 1) << fractionBits;
  }
  constexpr uint64_t nan() const {
    return top == Top::InfinityAndNaN
               ? infinity() | uint64_t(1) << (fractionBits - 1)
           : top == Top::NaN       ? allOnes()
           : top == Top::MinusZero ? signBit()
                                   : 0;
  }
  constexpr uint64_t largest() const {
    return top == Top::InfinityAndNaN ? infinity() - 1
           : top == Top::NaN          ? allOnes() - 1
                                      : allOnes();
  }
  /// The code of what is beyond that, where it does not become it.
  constexpr uint64_t beyond() const {
    return top == Top::InfinityAndNaN ? infinity()
           : top == Top::Nothing      ? largest()
                                      : nan();
  }
  /// The exponent of the least number's unit: subnormals are multiples of it.
  constexpr int smallestExponent() const {
    return (hasZero ? 1 : 0) - bias - fractionBits;
  }
};

inline constexpr NumberFormat kF64{"f64", 11, 52, 1023,
                                   NumberFormat::Top::InfinityAndNaN},
    kF32{"f32", 8, 23, 127, NumberFormat::Top::InfinityAndNaN},
    kBF16{"bf16", 8, 7, 127, NumberFormat::Top::InfinityAndNaN},
    kF16{"f16", 5, 10, 15, NumberFormat::Top::InfinityAndNaN},
    kF8E4M3FN{"f8E4M3FN", 4, 3, 7, NumberFormat::Top::NaN},
    kF8E5M2{"f8E5M2", 5, 2, 15, NumberFormat::Top::InfinityAndNaN},
    kF8E8M0FNU{"f8E8M0FNU", 8, 0, 127, NumberFormat::Top::NaN, false, false},
    kF8E4M3FNUZ{"f8E4M3FNUZ", 4, 3, 8, NumberFormat::Top::MinusZero},
    kF8E5M2FNUZ{"f8E5M2FNUZ", 5, 2, 16, NumberFormat::Top::MinusZero},
    kF6E2M3FN{"f6E2M3FN", 2, 3, 1, NumberFormat::Top::Nothing},
    kF6E3M2FN{"f6E3M2FN", 3, 2, 3, NumberFormat::Top::Nothing},
    kF4E2M1FN{"f4E2M1FN", 2, 1, 1, NumberFormat::Top::Nothing};

inline constexpr const NumberFormat *kNumberFormats[] = {
    &kF64,        &kF32,      &kBF16,      &kF16,
    &kF8E4M3FN,   &kF8E5M2,   &kF8E8M0FNU, &kF8E4M3FNUZ,
    &kF8E5M2FNUZ, &kF6E2M3FN, &kF6E3M2FN,  &kF4E2M1FN};

/// What happens to what is beyond the largest finite number, infinities too.
/// Overflow makes it infinity, or NaN where there is no infinity, or the
/// largest where there is neither; saturation makes it the largest, and the
/// least number of zero where there is no zero, which else is NaN. NaN stays
/// NaN; a format without one has zero for it.
enum class Overflow { ToInfinity, Saturate };

inline uint32_t getBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float floatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// The number that a code stands for.
inline double decodeNumber(const NumberFormat &format, uint64_t code) {
  if (format.digits() == 53) {
    double value;
    std::memcpy(&value, &code, sizeof value);
    return value;
  }
  if (format.digits() == 24)
    return floatFromBits(uint32_t(code));
  if (format.top == NumberFormat::Top::MinusZero && code == format.nan())
    return std::numeric_limits<double>::quiet_NaN();
  double sign = code & format.signBit() ? -1.0 : 1.0;
  uint64_t magnitude = code & format.allOnes();
  if (magnitude > format.largest())
    return format.top == NumberFormat::Top::InfinityAndNaN &&
                   magnitude == format.infinity()
               ? sign * std::numeric_limits<double>::infinity()
               : std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  int exponent = int(magnitude >> format.fractionBits);
  uint64_t one = uint64_t(1) << format.fractionBits,
           fraction = magnitude & (one - 1);
  if (exponent > 0 || !format.hasZero)
    fraction |= one;
  else
    exponent = 1;
  return sign * std::ldexp(double(fraction),
                           exponent - format.bias - format.fractionBits);
}

/// The code of the number nearest to `value`. A format without signs has NaN
/// for what is below zero.
inline uint64_t encodeNumber(const NumberFormat &format, double value,
                             Overflow overflow = Overflow::ToInfinity) {
  if (format.digits() == 53) {
    uint64_t code;
    std::memcpy(&code, &value, sizeof code);
    return code;
  }
  if (format.digits() == 24 && overflow == Overflow::ToInfinity)
    return getBits(static_cast<float>(value));
  bool isNaN = std::isnan(value);
  if (!format.isSigned && (isNaN || value < 0))
    return format.nan();
  uint64_t sign = std::signbit(value) ? format.signBit() : 0;
  if (isNaN)
    return sign | format.nan();
  double magnitude = std::fabs(value);
  uint64_t beyond =
      overflow == Overflow::Saturate ? format.largest() : format.beyond();
  if (std::isinf(magnitude))
    return sign | beyond;
  if (magnitude == 0) {
    if (!format.hasZero)
      return overflow == Overflow::Saturate ? 0 : format.nan();
    return format.top == NumberFormat::Top::MinusZero ? 0 : sign;
  }
  int exponent;
  std::frexp(magnitude, &exponent); // in [2^(exponent-1), 2^exponent)
  int unit = exponent - format.digits();
  if (unit < format.smallestExponent())
    unit = format.smallestExponent();
  // Powers of two scale exactly, so that this rounds once. What is rounded up
  // to the next power has twice the fraction, whose code follows on.
  auto whole =
      static_cast<uint64_t>(std::nearbyint(std::ldexp(magnitude, -unit)));
  uint64_t steps = uint64_t(unit - format.smallestExponent());
  uint64_t code = (steps << format.fractionBits) + whole;
  if (!format.hasZero) // its codes begin at the first power
    code = whole == 0 ? 0 : code - 1;
  if (code == 0 && format.top == NumberFormat::Top::MinusZero)
    return 0;
  return sign | (code > format.largest() ? beyond : code);
}

/// What saturation leaves to be rounded: `value`, or the nearest number of the
/// format beyond which it is. NaN stays, and so does the sign.
inline double saturateNumber(const NumberFormat &format, double value) {
  if (!format.hasZero && value == 0)
    return decodeNumber(format, 0);
  double most = decodeNumber(format, format.largest());
  return value > most ? most : value < -most ? -most : value;
}

/// `value` rounded to the format.
inline double roundToNumber(const NumberFormat &format, double value,
                            Overflow overflow = Overflow::ToInfinity) {
  return decodeNumber(format, encodeNumber(format, value, overflow));
}

//===----------------------------------------------------------------------===//
// Between f32 and narrower formats with two zeros, by the bits, as loops want
// it
//===----------------------------------------------------------------------===//

template <const NumberFormat &F> inline float widenNumber(uint32_t code) {
  constexpr int shift = 23 - F.fractionBits;
  uint32_t magnitude = code & uint32_t(F.allOnes());
  uint32_t sign = (code & uint32_t(F.signBit())) << (31 - F.magnitudeBits());
  if constexpr (F.exponentBits == 8)
    return floatFromBits(sign | magnitude << shift);
  // The exponents differ by a constant, subnormals' too.
  float value = floatFromBits(magnitude << shift) *
                floatFromBits(uint32_t(254 - F.bias) << 23);
  if (magnitude > F.largest())
    value = floatFromBits(
        F.top == NumberFormat::Top::InfinityAndNaN
            ? 0x7F800000u | (magnitude - uint32_t(F.infinity())) << shift
            : 0x7FC00000u);
  return floatFromBits(getBits(value) | sign);
}

template <const NumberFormat &F, Overflow O = Overflow::ToInfinity>
inline uint32_t narrowNumber(float value) {
  constexpr int shift = 23 - F.fractionBits;
  uint32_t bits = getBits(value), magnitude = bits & 0x7FFFFFFF;
  uint32_t sign = bits >> 31 << F.magnitudeBits();
  if (magnitude > 0x7F800000)
    return sign | uint32_t(F.nan());
  constexpr uint32_t rebias = uint32_t(127 - F.bias) << F.fractionBits;
  uint32_t code =
      ((magnitude + ((1u << (shift - 1)) - 1) + (magnitude >> shift & 1)) >>
       shift) -
      rebias;
  if constexpr (F.exponentBits != 8)
    if (magnitude < uint32_t(128 - F.bias) << 23) {
      // Adding a number whose unit is the least one rounds to it.
      constexpr uint32_t unit = uint32_t(F.smallestExponent() + 23 + 127) << 23;
      code = getBits(floatFromBits(magnitude) + floatFromBits(unit)) - unit;
      return sign | code;
    }
  constexpr uint32_t beyond =
      O == Overflow::Saturate ? F.largest() : F.beyond();
  return sign | (code > F.largest() ? beyond : code);
}

} // namespace accel::rt

#endif // ACCEL_RT_NUMBERFORMAT_H
