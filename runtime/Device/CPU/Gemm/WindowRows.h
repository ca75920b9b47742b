// The windows of a convolution whose channels come last, as rows of a matrix: a
// row has, place by place of one position's window, the channels of the element
// that stands there.

#ifndef ACCEL_RT_DEVICE_CPU_GEMM_WINDOWROWS_H
#define ACCEL_RT_DEVICE_CPU_GEMM_WINDOWROWS_H

#include "Device/CPU/Gemm/ConvolutionBlocks.h"

namespace accel::rt::cpu {

/// Which element a position finds at a place of its window, in each dimension:
/// position · stride + place · step - low, if it is one of `elements`.
struct WindowWalk {
  ConvolutionDesc::Space elements, positions, window, stride, step, low;

  /// Positions of y in x.
  static WindowWalk overInput(const ConvolutionDesc &desc);
  /// Positions of x in y, of a convolution whose strides are 1: its transpose.
  static WindowWalk overOutput(const ConvolutionDesc &desc);
};

/// How a tensor lies, in bytes: samples and positions apart, and how many bytes
/// of a position are looked at.
struct ChannelRows {
  int64_t sample, position, run;
};

/// Writes rows [first, first + count) of samples times positions, each without
/// gaps: of every place a run, zeros where it stands outside.
void gatherWindowRows(const WindowWalk &walk, const char *from,
                      const ChannelRows &layout, Positions rows, char *to);

/// The transpose, of one place of the windows and one sample: adds rows of
/// `channels` f32 (f64) numbers to the elements that the positions find there.
void scatterWindowRows(const WindowWalk &walk, int64_t place, GemmType type,
                       const void *rows, Positions positions, int64_t channels,
                       int64_t stride, void *to);

} // namespace accel::rt::cpu

#endif // ACCEL_RT_DEVICE_CPU_GEMM_WINDOWROWS_H
