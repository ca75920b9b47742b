// The tiles of a product in bf16 pieces, and how f32 matrices are split into
// them.

#ifndef ACCEL_RT_DEVICE_CPU_GEMM_BF16X6PACK_H
#define ACCEL_RT_DEVICE_CPU_GEMM_BF16X6PACK_H

#include <cstdint>

namespace accel::rt::cpu::bf16x6 {

/// Rows of a, or columns of b, in a tile; its inner elements; and the pieces of
/// an f32.
constexpr int64_t kLanes = 16, kDepth = 32, kPieces = 3;

/// One piece of 16 rows of a: [16 rows][32 inner]; or of 16 columns of b: [16
/// pairs of inner][16 columns][2].
struct alignas(64) Tile {
  uint32_t bits[kLanes * kDepth / 2];
};

/// Which operand a matrix is: its lanes are the rows of a, or the columns of b.
enum class Side { Rows, Columns };

/// Splits x[lane · laneStride + inner · innerStride], one of the strides 1,
/// into tiles [lanes / 16][⌈depth / 32⌉][piece]. Lanes from `used` on, and what
/// a tile has beyond `depth`, are zeros and not read. Requires AVX-512 (F, BW).
void split(Side side, const float *x, int64_t laneStride, int64_t innerStride,
           int64_t lanes, int64_t used, int64_t depth, Tile *tiles);

} // namespace accel::rt::cpu::bf16x6

#endif // ACCEL_RT_DEVICE_CPU_GEMM_BF16X6PACK_H
