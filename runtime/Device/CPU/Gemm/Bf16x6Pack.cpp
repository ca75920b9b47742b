// Splits f32 matrices into tiles of bf16 pieces: x = x0 + x1 + x2, where x0 is
// x rounded to bf16 and x1 what then remains, rounded; x2 is what remains after
// that, which a bf16 holds exactly.

#include "Device/CPU/Gemm/Bf16x6Pack.h"

#include <algorithm>
#include <immintrin.h>

using namespace accel::rt::cpu::bf16x6;

#define ACCEL_AVX512 __attribute__((target("avx512f,avx512bw")))

namespace {
/// The pieces of 16 numbers, each in the upper halves of its words.
struct Pieces {
  __m512i piece[kPieces];
};

ACCEL_AVX512 inline Pieces takePieces(__m512 x) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  const __m512i half = _mm512_set1_epi32(0x8000);
  Pieces made;
  for (int64_t i = 0; i + 1 < kPieces; ++i) {
    // To nearest, ties away from zero.
    made.piece[i] =
        _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(x), half), upper);
    x = _mm512_sub_ps(x, _mm512_castsi512_ps(made.piece[i]));
  }
  // Exact, and not rounded: so a NaN, which adding may have made a zero above,
  // arrives in this piece.
  made.piece[kPieces - 1] = _mm512_and_si512(_mm512_castps_si512(x), upper);
  return made;
}

/// to[j][i] = from[i][j] for 16 × 16 words.
ACCEL_AVX512 inline void transpose(const __m512i *from, float *to,
                                   int64_t stride) {
  __m512i pairs[16], quads[16];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(from[i], from[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(from[i], from[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      quads[i + 2 * j] = _mm512_unpacklo_epi64(pairs[i + j], pairs[i + j + 2]);
      quads[i + 2 * j + 1] =
          _mm512_unpackhi_epi64(pairs[i + j], pairs[i + j + 2]);
    }
  for (int j = 0; j < 4; ++j) {
    __m512i low = _mm512_shuffle_i32x4(quads[j], quads[j + 4], 0x88);
    __m512i lowOdd = _mm512_shuffle_i32x4(quads[j], quads[j + 4], 0xdd);
    __m512i high = _mm512_shuffle_i32x4(quads[j + 8], quads[j + 12], 0x88);
    __m512i highOdd = _mm512_shuffle_i32x4(quads[j + 8], quads[j + 12], 0xdd);
    _mm512_storeu_si512(to + j * stride, _mm512_shuffle_i32x4(low, high, 0x88));
    _mm512_storeu_si512(to + (j + 4) * stride,
                        _mm512_shuffle_i32x4(lowOdd, highOdd, 0x88));
    _mm512_storeu_si512(to + (j + 8) * stride,
                        _mm512_shuffle_i32x4(low, high, 0xdd));
    _mm512_storeu_si512(to + (j + 12) * stride,
                        _mm512_shuffle_i32x4(lowOdd, highOdd, 0xdd));
  }
}

/// Words 0 … count-1 of 16, of which any number may exist.
inline __mmask16 first(int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, 16)) - 1);
}

/// Numbers of a tile, where they lie in memory or in a copy: major · stride +
/// minor, of which `majors` × `minors` (up to 32) exist.
struct Source {
  const float *data;
  int64_t stride, majors;
  __mmask16 masks[2];

  Source(const float *data, int64_t stride, int64_t majors, int64_t minors)
      : data(data), stride(stride),
        majors(majors), masks{first(minors), first(minors - 16)} {}

  /// Minors 0 … 15, or 16 … 31, of a major.
  ACCEL_AVX512 __m512 load(int64_t major, int half) const {
    if (major >= majors)
      return _mm512_setzero_ps();
    return _mm512_maskz_loadu_ps(masks[half],
                                 data + major * stride + half * 16);
  }

  /// Itself the other way round, by a copy of `majorCount` × `minorCount`.
  ACCEL_AVX512 Source flip(int64_t majorCount, int64_t minorCount,
                           float *copy) const {
    for (int64_t major = 0; major < majorCount; major += 16)
      for (int64_t minor = 0; minor < minorCount; minor += 16) {
        __m512i lines[16];
        for (int i = 0; i < 16; ++i)
          lines[i] = _mm512_castps_si512(load(major + i, minor / 16));
        transpose(lines, copy + minor * majorCount + major, majorCount);
      }
    return {copy, majorCount, minorCount, majorCount};
  }
};

/// [16 rows][32 inner], three times.
ACCEL_AVX512 void writeRows(const Source &x, Tile *tiles) {
  const __m512i odd = _mm512_set_epi16(
      63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29,
      27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  for (int64_t row = 0; row < kLanes; ++row) {
    Pieces left = takePieces(x.load(row, 0)),
           right = takePieces(x.load(row, 1));
    for (int64_t piece = 0; piece < kPieces; ++piece)
      _mm512_store_si512(tiles[piece].bits + row * kLanes,
                         _mm512_permutex2var_epi16(left.piece[piece], odd,
                                                   right.piece[piece]));
  }
}

/// [16 pairs of inner][16 columns][2], three times.
ACCEL_AVX512 void writeColumns(const Source &x, Tile *tiles) {
  for (int64_t pair = 0; pair < kDepth / 2; ++pair) {
    Pieces even = takePieces(x.load(2 * pair, 0)),
           odd = takePieces(x.load(2 * pair + 1, 0));
    for (int64_t piece = 0; piece < kPieces; ++piece)
      _mm512_store_si512(
          tiles[piece].bits + pair * kLanes,
          _mm512_or_si512(_mm512_srli_epi32(even.piece[piece], 16),
                          odd.piece[piece]));
  }
}

} // namespace

ACCEL_AVX512 void accel::rt::cpu::bf16x6::split(Side side, const float *x,
                                                int64_t laneStride,
                                                int64_t innerStride,
                                                int64_t lanes, int64_t used,
                                                int64_t depth, Tile *tiles) {
  alignas(64) float copy[kLanes * kDepth];
  int64_t steps = (depth + kDepth - 1) / kDepth;
  bool lanesMajor = innerStride == 1;
  auto splitTile = [&](int64_t step, int64_t lane) ACCEL_AVX512 {
    const float *from = x + lane * laneStride + step * kDepth * innerStride;
    Tile *to = tiles + (lane / kLanes * steps + step) * kPieces;
    int64_t left = depth - step * kDepth;
    Source source = lanesMajor ? Source(from, laneStride, used - lane, left)
                               : Source(from, innerStride, left, used - lane);
    if (side == Side::Rows)
      writeRows(lanesMajor ? source : source.flip(kDepth, kLanes, copy), to);
    else
      writeColumns(lanesMajor ? source.flip(kLanes, kDepth, copy) : source, to);
  };
  // In the order in which memory is read ahead: along what is contiguous.
  if (lanesMajor)
    for (int64_t lane = 0; lane < lanes; lane += kLanes)
      for (int64_t step = 0; step < steps; ++step)
        splitTile(step, lane);
  else
    for (int64_t step = 0; step < steps; ++step)
      for (int64_t lane = 0; lane < lanes; lane += kLanes)
        splitTile(step, lane);
}
