// Rows of elements between the types of products: operands that no library
// multiplies are widened, sums are rounded to the type of the result.

#ifndef ACCEL_RT_DEVICE_CPU_GEMM_CONVERTROWS_H
#define ACCEL_RT_DEVICE_CPU_GEMM_CONVERTROWS_H

#include "Device/CPU/Gemm/Gemm.h"

namespace accel::rt::cpu {

/// The type that elements of a type are multiplied in: the type itself, or, of
/// what no library multiplies, one that has all of its numbers.
GemmType getWideType(GemmType type);

/// Writes `count` elements of `type` as elements of its wide type.
void widenRow(GemmType type, const void *from, int64_t count, void *to);

/// Writes `count` elements of a type that is narrower than f32 as f32.
void widenRowToSums(GemmType type, const void *from, int64_t count, float *to);

/// Rounds `count` sums to `type`, one of those that are narrower than f32, to
/// nearest, ties to even.
void narrowRow(GemmType type, const float *from, int64_t count, void *to);

} // namespace accel::rt::cpu

#endif // ACCEL_RT_DEVICE_CPU_GEMM_CONVERTROWS_H
