// One loop for each pair of types; what becomes smaller goes forward through
// the buffer, what becomes larger backward, so that nothing is overwritten
// before it is read.

#include "Data/ConvertElements.h"

#include "accel-rt/NumberFormat.h"

#include <cstring>
#include <type_traits>

namespace accel::rt {
namespace {

bool isWhole(DType dtype) { return dtype <= DType::UI64; }

/// A code of a format, as f32, which has all of its numbers; of a number, that
/// of the nearest one.
template <const NumberFormat &F> struct Narrow {
  uint16_t code;
  Narrow() = default;
  explicit Narrow(float value) : code(uint16_t(narrowNumber<F>(value))) {}
  explicit Narrow(double value) : code(uint16_t(encodeNumber(F, value))) {}
  explicit operator float() const { return widenNumber<F>(code); }
  explicit operator double() const { return widenNumber<F>(code); }
};

/// A truth value: a byte.
struct Bit {
  uint8_t value;
};

template <class From, class To> bool convert(From from, To &to) {
  if constexpr (std::is_same_v<From, Bit>) {
    to = static_cast<To>(from.value != 0);
  } else if constexpr (std::is_same_v<To, Bit>) {
    to.value = from == 1;
    return from == 0 || from == 1;
  } else if constexpr (std::is_integral_v<From>) {
    to = static_cast<To>(from);
    // Back again it is the same, and on the same side of zero.
    return static_cast<From>(to) == from && (to < 0) == (from < 0);
  } else {
    to = static_cast<To>(static_cast<float>(from));
  }
  return true;
}

/// Each element by `change`, which fails where a whole number does not fit.
template <class From, class To, class Change>
Status run(char *buffer, int64_t count, Change change) {
  constexpr bool grows = sizeof(To) > sizeof(From);
  for (int64_t k = 0; k < count; ++k) {
    int64_t i = grows ? count - 1 - k : k;
    From from;
    To to;
    std::memcpy(&from, buffer + i * int64_t(sizeof(From)), sizeof from);
    bool fits = change(from, to);
    if constexpr (std::is_integral_v<From>)
      if (!fits)
        return Status::error(std::to_string(from));
    std::memcpy(buffer + i * int64_t(sizeof(To)), &to, sizeof to);
  }
  return Status();
}

template <class From, class To> Status run(char *buffer, int64_t count) {
  return run<From, To>(buffer, count, convert<From, To>);
}

/// Rounds once: f64 does not go by way of f32.
template <class From, class To> void round(char *buffer, int64_t count) {
  using Exact = std::conditional_t<std::is_same_v<From, double>, double, float>;
  (void)run<From, To>(buffer, count, [](From from, To &to) {
    to = static_cast<To>(static_cast<Exact>(from));
    return true;
  });
}

template <class From> void roundTo(DType to, char *buffer, int64_t count) {
  switch (to) {
  case DType::F16:
    return round<From, Narrow<kF16>>(buffer, count);
  case DType::BF16:
    return round<From, Narrow<kBF16>>(buffer, count);
  case DType::F32:
    return round<From, float>(buffer, count);
  default:
    return round<From, double>(buffer, count);
  }
}

template <class From> Status toWhole(DType to, char *buffer, int64_t count) {
  switch (to) {
  case DType::I1:
    if constexpr (std::is_same_v<From, Bit>)
      return Status();
    else
      return run<From, Bit>(buffer, count);
  case DType::I8:
    return run<From, int8_t>(buffer, count);
  case DType::I16:
    return run<From, int16_t>(buffer, count);
  case DType::I32:
    return run<From, int32_t>(buffer, count);
  case DType::I64:
    return run<From, int64_t>(buffer, count);
  case DType::UI8:
    return run<From, uint8_t>(buffer, count);
  case DType::UI16:
    return run<From, uint16_t>(buffer, count);
  case DType::UI32:
    return run<From, uint32_t>(buffer, count);
  default:
    return run<From, uint64_t>(buffer, count);
  }
}

template <class From> Status toFloating(DType to, char *buffer, int64_t count) {
  return to == DType::F32 ? run<From, float>(buffer, count)
                          : run<From, double>(buffer, count);
}

Status convertAny(DType from, DType to, char *buffer, int64_t count) {
  switch (from) {
  case DType::I1:
    return toWhole<Bit>(to, buffer, count);
  case DType::I8:
    return toWhole<int8_t>(to, buffer, count);
  case DType::I16:
    return toWhole<int16_t>(to, buffer, count);
  case DType::I32:
    return toWhole<int32_t>(to, buffer, count);
  case DType::I64:
    return toWhole<int64_t>(to, buffer, count);
  case DType::UI8:
    return toWhole<uint8_t>(to, buffer, count);
  case DType::UI16:
    return toWhole<uint16_t>(to, buffer, count);
  case DType::UI32:
    return toWhole<uint32_t>(to, buffer, count);
  case DType::UI64:
    return toWhole<uint64_t>(to, buffer, count);
  case DType::F16:
    return toFloating<Narrow<kF16>>(to, buffer, count);
  case DType::BF16:
    return toFloating<Narrow<kBF16>>(to, buffer, count);
  default:
    return toFloating<float>(to, buffer, count);
  }
}

} // namespace

bool canConvert(DType from, DType to) {
  if (from == to)
    return true;
  if (isWhole(from))
    return isWhole(to);
  bool isHalf = from == DType::F16 || from == DType::BF16;
  return (to == DType::F32 && isHalf) ||
         (to == DType::F64 && (isHalf || from == DType::F32));
}

bool isFloatingPoint(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::F32 ||
         dtype == DType::F64;
}

void roundElements(DType from, DType to, char *buffer, int64_t count) {
  if (from == to)
    return;
  switch (from) {
  case DType::F16:
    return roundTo<Narrow<kF16>>(to, buffer, count);
  case DType::BF16:
    return roundTo<Narrow<kBF16>>(to, buffer, count);
  case DType::F32:
    return roundTo<float>(to, buffer, count);
  default:
    return roundTo<double>(to, buffer, count);
  }
}

Status convertElements(DType from, DType to, char *buffer, int64_t count) {
  if (from == to)
    return Status();
  Status status = convertAny(from, to, buffer, count);
  if (!status.ok())
    return Status::error("expected whole numbers that fit " +
                         std::string(dtypeName(to)) + ", found " +
                         status.message());
  return Status();
}

} // namespace accel::rt
