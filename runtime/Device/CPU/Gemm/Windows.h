// The windows of a convolution as rows of a matrix: row (c, k) has of each
// position the element that stands at place k of its window in channel c.

#ifndef ACCEL_RT_DEVICE_CPU_GEMM_WINDOWS_H
#define ACCEL_RT_DEVICE_CPU_GEMM_WINDOWS_H

#include "Device/CPU/Gemm/ConvolutionBlocks.h"

namespace accel::rt::cpu {

/// Writes the rows of `channels` channels, of `count` elements each: `plane` is
/// the first channel, others are `stride` elements apart. What is outside is 0.
void gatherWindows(const ConvolutionDesc &desc, const void *plane,
                   int64_t stride, int64_t channels, Positions positions,
                   void *rows);

/// The transpose: adds rows of f32, or of f64 if the convolution is, to the
/// elements that they are of. What is outside is dropped.
void scatterWindows(const ConvolutionDesc &desc, const void *rows,
                    int64_t channels, Positions positions, void *plane,
                    int64_t stride);

} // namespace accel::rt::cpu

#endif // ACCEL_RT_DEVICE_CPU_GEMM_WINDOWS_H
