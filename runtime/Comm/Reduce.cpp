// Elements are combined in tiles that stay in the first level of cache, source
// after source, so that every source is read once and in order.

#include "Comm/Reduce.h"

#include <cmath>
#include <cstring>

namespace accel::rt {
namespace {

constexpr int64_t kTile = 1024;

struct BFloat16 {
  uint16_t bits;
};
struct Half {
  uint16_t bits;
};

float load(BFloat16 value) {
  uint32_t bits = uint32_t(value.bits) << 16;
  float result;
  std::memcpy(&result, &bits, 4);
  return result;
}
void store(float value, BFloat16 &target) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (std::isnan(value)) {
    target.bits = static_cast<uint16_t>(bits >> 16 | 64);
    return;
  }
  // To nearest, ties to even.
  target.bits = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float load(Half value) {
  uint32_t sign = uint32_t(value.bits & 0x8000) << 16;
  uint32_t exponent = value.bits >> 10 & 31, fraction = value.bits & 1023;
  float result;
  if (exponent == 0) {
    result = static_cast<float>(fraction) * 0x1p-24f;
  } else {
    uint32_t bits = exponent == 31 ? 0x7f800000u | fraction << 13
                                   : (exponent + 112) << 23 | fraction << 13;
    std::memcpy(&result, &bits, 4);
  }
  uint32_t bits;
  std::memcpy(&bits, &result, 4);
  bits |= sign;
  std::memcpy(&result, &bits, 4);
  return result;
}
void store(float value, Half &target) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  float magnitude = std::fabs(value);
  if (std::isnan(value)) {
    target.bits = sign | 0x7e00;
  } else if (magnitude >= 65520.f) {
    target.bits = sign | 0x7c00;
  } else if (magnitude < 0x1p-14f) {
    // Subnormal: the number of units, rounded to nearest even.
    target.bits = static_cast<uint16_t>(sign | std::lrint(magnitude * 0x1p24f));
  } else {
    uint32_t rounded = (bits & 0x7fffffff) + 0xfff + (bits >> 13 & 1);
    target.bits = static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
  }
}

template <class T> T load(T value) { return value; }
template <class T> void store(T value, T &target) { target = value; }

template <class A> A combineTwo(Combine combine, A a, A b) {
  switch (combine) {
  case Combine::Max: // NaN wins: a lost one would hide a fault
    return a != a || a > b ? a : b;
  case Combine::Min:
    return a != a || a < b ? a : b;
  default:
    return a + b;
  }
}

template <class T, class A, Combine C>
void reduceTyped(const PairLayout &layout, void *target,
                 const void *const *sources, size_t count, int64_t begin,
                 int64_t end) {
  layout.forRange(begin, end,
                  [&](int64_t to, int64_t from, int64_t toStride,
                      int64_t fromStride, int64_t elements) {
                    A tile[kTile];
                    for (int64_t first = 0; first < elements; first += kTile) {
                      int64_t size = std::min(kTile, elements - first);
                      for (size_t s = 0; s < count; ++s) {
                        const T *in = static_cast<const T *>(sources[s]) +
                                      from + first * fromStride;
                        if (s == 0)
                          for (int64_t i = 0; i < size; ++i)
                            tile[i] = load(in[i * fromStride]);
                        else if (fromStride == 1)
                          for (int64_t i = 0; i < size; ++i)
                            tile[i] = combineTwo<A>(C, tile[i], load(in[i]));
                        else
                          for (int64_t i = 0; i < size; ++i)
                            tile[i] = combineTwo<A>(C, tile[i],
                                                    load(in[i * fromStride]));
                      }
                      T *out = static_cast<T *>(target) + to + first * toStride;
                      for (int64_t i = 0; i < size; ++i)
                        store(tile[i], out[i * toStride]);
                    }
                  });
}

template <class T, class A>
void reduceCombine(const PairLayout &layout, Combine combine, void *target,
                   const void *const *sources, size_t count, int64_t begin,
                   int64_t end) {
  switch (combine) {
  case Combine::Sum:
    return reduceTyped<T, A, Combine::Sum>(layout, target, sources, count,
                                           begin, end);
  case Combine::Max:
    return reduceTyped<T, A, Combine::Max>(layout, target, sources, count,
                                           begin, end);
  case Combine::Min:
    return reduceTyped<T, A, Combine::Min>(layout, target, sources, count,
                                           begin, end);
  }
}

} // namespace

std::optional<Combine> combineFromName(const std::string &name) {
  if (name == "sum")
    return Combine::Sum;
  if (name == "max")
    return Combine::Max;
  if (name == "min")
    return Combine::Min;
  return std::nullopt;
}

bool canReduce(DType dtype) {
  switch (dtype) {
  case DType::I32:
  case DType::I64:
  case DType::F16:
  case DType::BF16:
  case DType::F32:
  case DType::F64:
    return true;
  default:
    return false;
  }
}

void reduceElements(const PairLayout &layout, DType dtype, Combine combine,
                    void *target, const void *const *sources, size_t count,
                    int64_t begin, int64_t end) {
  switch (dtype) {
  case DType::I32: // sums wrap, as everywhere
    if (combine == Combine::Sum)
      return reduceCombine<uint32_t, uint32_t>(layout, combine, target, sources,
                                               count, begin, end);
    return reduceCombine<int32_t, int32_t>(layout, combine, target, sources,
                                           count, begin, end);
  case DType::I64:
    if (combine == Combine::Sum)
      return reduceCombine<uint64_t, uint64_t>(layout, combine, target, sources,
                                               count, begin, end);
    return reduceCombine<int64_t, int64_t>(layout, combine, target, sources,
                                           count, begin, end);
  case DType::F16:
    return reduceCombine<Half, float>(layout, combine, target, sources, count,
                                      begin, end);
  case DType::BF16:
    return reduceCombine<BFloat16, float>(layout, combine, target, sources,
                                          count, begin, end);
  case DType::F32:
    return reduceCombine<float, float>(layout, combine, target, sources, count,
                                       begin, end);
  case DType::F64:
    return reduceCombine<double, double>(layout, combine, target, sources,
                                         count, begin, end);
  default:
    break; // prepareCollective has refused it
  }
}

} // namespace accel::rt
