// Windows run by run: positions that differ in the last dimension alone lie
// `stride` apart in the input.

#include "Device/CPU/Gemm/Windows.h"

#include <algorithm>
#include <cstring>

namespace accel::rt::cpu {
namespace {

/// Positions of one run that have an element inside.
struct Run {
  int64_t before; ///< how many come first that have none
  int64_t inside;
  int64_t element; ///< that of the first inside, in its plane
};

/// Calls fn(row, column, length, run) for each row of `channels` channels and
/// each of its runs; elements of the run count from the channel's plane.
template <class Fn>
void forEachRun(const ConvolutionDesc &desc, int64_t channels,
                Positions positions, Fn &&fn) {
  const auto &[depth, height, width] = desc.in;
  const ConvolutionDesc::Space &window = desc.window, &out = desc.out;
  int64_t places = ConvolutionDesc::count(window);
  for (int64_t row = 0; row < channels * places; ++row) {
    int64_t channel = row / places, place = row % places;
    int64_t shift[3];
    for (int dim = 2; dim >= 0; --dim) {
      shift[dim] = place % window[dim] * desc.dilation[dim] - desc.low[dim];
      place /= window[dim];
    }
    int64_t step = desc.stride[2];
    // Of the last dimension, the positions whose element is inside.
    int64_t begin = shift[2] >= 0 ? 0 : (-shift[2] + step - 1) / step;
    int64_t end = width - shift[2] <= 0
                      ? 0
                      : std::min((width - shift[2] + step - 1) / step, out[2]);
    begin = std::min(begin, std::max<int64_t>(end, 0));
    for (int64_t column = 0; column < positions.count;) {
      int64_t position = positions.first + column;
      int64_t last = position % out[2], line = position / out[2];
      int64_t length = std::min(out[2] - last, positions.count - column);
      int64_t z = line / out[1] * desc.stride[0] + shift[0],
              y = line % out[1] * desc.stride[1] + shift[1];
      Run run{length, 0, 0};
      if (z >= 0 && z < depth && y >= 0 && y < height) {
        int64_t from = std::clamp(begin, last, last + length),
                to = std::clamp(end, from, last + length);
        if (to > from)
          run = {from - last, to - from,
                 (z * height + y) * width + from * step + shift[2]};
      }
      fn(row, channel, column, length, run);
      column += length;
    }
  }
}

template <class T>
void gather(const ConvolutionDesc &desc, const T *planes, int64_t stride,
            int64_t channels, Positions positions, T *rows) {
  int64_t step = desc.stride[2];
  forEachRun(desc, channels, positions,
             [&](int64_t row, int64_t channel, int64_t column, int64_t length,
                 const Run &run) {
               T *to = rows + row * positions.count + column;
               std::fill_n(to, run.before, T(0));
               const T *from = planes + channel * stride + run.element;
               if (step == 1)
                 std::copy_n(from, run.inside, to + run.before);
               else
                 for (int64_t i = 0; i < run.inside; ++i)
                   to[run.before + i] = from[i * step];
               int64_t done = run.before + run.inside;
               std::fill_n(to + done, length - done, T(0));
             });
}

template <class T>
void scatter(const ConvolutionDesc &desc, const T *rows, int64_t channels,
             Positions positions, T *planes, int64_t stride) {
  int64_t step = desc.stride[2];
  forEachRun(desc, channels, positions,
             [&](int64_t row, int64_t channel, int64_t column, int64_t,
                 const Run &run) {
               const T *from =
                   rows + row * positions.count + column + run.before;
               T *to = planes + channel * stride + run.element;
               for (int64_t i = 0; i < run.inside; ++i)
                 to[i * step] += from[i];
             });
}

} // namespace

void gatherWindows(const ConvolutionDesc &desc, const void *plane,
                   int64_t stride, int64_t channels, Positions positions,
                   void *rows) {
  auto run = [&](auto zero) {
    using T = decltype(zero);
    gather(desc, static_cast<const T *>(plane), stride, channels, positions,
           static_cast<T *>(rows));
  };
  switch (getBytes(desc.type)) { // zeros of all types are zero bytes
  case 8:
    return run(uint64_t());
  case 4:
    return run(uint32_t());
  default:
    return run(uint16_t());
  }
}

void scatterWindows(const ConvolutionDesc &desc, const void *rows,
                    int64_t channels, Positions positions, void *plane,
                    int64_t stride) {
  if (desc.type == GemmType::F64)
    scatter(desc, static_cast<const double *>(rows), channels, positions,
            static_cast<double *>(plane), stride);
  else
    scatter(desc, static_cast<const float *>(rows), channels, positions,
            static_cast<float *>(plane), stride);
}

} // namespace accel::rt::cpu
