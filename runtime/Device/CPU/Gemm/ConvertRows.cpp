// By the instructions for f16 where the machine has them, as all of x86-64-v3
// have; else by the bits.

#include "Device/CPU/Gemm/ConvertRows.h"

#include "accel-rt/NumberFormat.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace accel::rt::cpu {
namespace {

#ifdef __x86_64__
/// Every processor with AVX2 has F16C, which clang 14 cannot ask for.
bool hasHalfInstructions() { return __builtin_cpu_supports("avx2"); }

/// As many as whole vectors hold; how many that were.
[[gnu::target("avx2,f16c")]] int64_t widenHalves(const uint16_t *from,
                                                 int64_t count, float *to) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(
                                 reinterpret_cast<const __m128i *>(from + i))));
  return i;
}

[[gnu::target("avx2,f16c")]] int64_t
narrowToHalves(const float *from, int64_t count, uint16_t *to) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(
        reinterpret_cast<__m128i *>(to + i),
        _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  return i;
}
#else
bool hasHalfInstructions() { return false; }
int64_t widenHalves(const uint16_t *, int64_t, float *) { return 0; }
int64_t narrowToHalves(const float *, int64_t, uint16_t *) { return 0; }
#endif

/// Each code of an 8-bit format in bf16, which has all of their numbers.
template <const NumberFormat &F> const uint16_t *getTable() {
  struct Table {
    Table() {
      for (uint32_t code = 0; code < 256; ++code)
        of[code] = static_cast<uint16_t>(getBits(widenNumber<F>(code)) >> 16);
    }
    uint16_t of[256];
  };
  static const Table table;
  return table.of;
}

template <const NumberFormat &F, class Code>
void widenAll(const void *from, int64_t count, float *to) {
  auto *codes = static_cast<const Code *>(from);
  for (int64_t i = 0; i < count; ++i)
    to[i] = widenNumber<F>(codes[i]);
}

template <const NumberFormat &F, class Code>
void narrowAll(const float *from, int64_t count, void *to) {
  auto *codes = static_cast<Code *>(to);
  for (int64_t i = 0; i < count; ++i)
    codes[i] = static_cast<Code>(narrowNumber<F>(from[i]));
}

} // namespace

GemmType getWideType(GemmType type) {
  switch (type) {
  case GemmType::F16:
    return GemmType::F32;
  case GemmType::F8E4M3FN:
  case GemmType::F8E5M2:
    return GemmType::BF16;
  default:
    return type;
  }
}

void widenRow(GemmType type, const void *from, int64_t count, void *to) {
  if (type == GemmType::F16)
    return widenRowToSums(type, from, count, static_cast<float *>(to));
  const uint16_t *table =
      type == GemmType::F8E4M3FN ? getTable<kF8E4M3FN>() : getTable<kF8E5M2>();
  auto *codes = static_cast<const uint8_t *>(from);
  auto *numbers = static_cast<uint16_t *>(to);
  for (int64_t i = 0; i < count; ++i)
    numbers[i] = table[codes[i]];
}

void widenRowToSums(GemmType type, const void *from, int64_t count, float *to) {
  if (type == GemmType::BF16)
    return widenAll<kBF16, uint16_t>(from, count, to);
  if (type == GemmType::F8E4M3FN)
    return widenAll<kF8E4M3FN, uint8_t>(from, count, to);
  if (type == GemmType::F8E5M2)
    return widenAll<kF8E5M2, uint8_t>(from, count, to);
  auto *codes = static_cast<const uint16_t *>(from);
  int64_t i = hasHalfInstructions() ? widenHalves(codes, count, to) : 0;
  widenAll<kF16, uint16_t>(codes + i, count - i, to + i);
}

void narrowRow(GemmType type, const float *from, int64_t count, void *to) {
  if (type == GemmType::BF16)
    return narrowAll<kBF16, uint16_t>(from, count, to);
  if (type == GemmType::F8E4M3FN)
    return narrowAll<kF8E4M3FN, uint8_t>(from, count, to);
  if (type == GemmType::F8E5M2)
    return narrowAll<kF8E5M2, uint8_t>(from, count, to);
  auto *codes = static_cast<uint16_t *>(to);
  int64_t i = hasHalfInstructions() ? narrowToHalves(from, count, codes) : 0;
  narrowAll<kF16, uint16_t>(from + i, count - i, codes + i);
}

} // namespace accel::rt::cpu
