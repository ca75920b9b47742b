// Rows of windows, place by place: runs of channels are copied whole, and those
// of neighbouring places at once where they lie side by side.

#include "Device/CPU/Gemm/WindowRows.h"

using namespace accel::rt;
using namespace accel::rt::cpu;

WindowWalk WindowWalk::overInput(const ConvolutionDesc &desc) {
  return {desc.in, desc.out, desc.window, desc.stride, desc.dilation, desc.low};
}

WindowWalk WindowWalk::overOutput(const ConvolutionDesc &desc) {
  WindowWalk walk = {desc.out,    desc.in,       desc.window,
                     desc.stride, desc.dilation, desc.low};
  for (int dim = 0; dim < 3; ++dim)
    walk.step[dim] = -walk.step[dim], walk.low[dim] = -walk.low[dim];
  return walk;
}

namespace {

/// A position of three dimensions that counts on, the last one fastest.
struct Counter {
  Counter(int64_t number, const ConvolutionDesc::Space &sizes) : sizes(sizes) {
    for (int dim = 2; dim >= 0; --dim) {
      at[dim] = number % sizes[dim];
      number /= sizes[dim];
    }
    sample = number;
  }
  void next() {
    for (int dim = 2; dim >= 0; --dim) {
      if (++at[dim] < sizes[dim])
        return;
      at[dim] = 0;
    }
    ++sample;
  }
  ConvolutionDesc::Space sizes, at;
  int64_t sample;
};

/// The places [begin, end) of a window's dimension that stand inside.
struct Inside {
  Inside(const WindowWalk &walk, int dim, int64_t position)
      : first(position * walk.stride[dim] - walk.low[dim]),
        step(walk.step[dim]), end(walk.window[dim]) {
    while (begin < end && !has(walk.elements[dim], begin))
      ++begin;
    while (begin < end && !has(walk.elements[dim], end - 1))
      --end;
  }
  int64_t element(int64_t place) const { return first + place * step; }
  bool has(int64_t size, int64_t place) const {
    return element(place) >= 0 && element(place) < size;
  }
  int64_t first, step, begin = 0, end;
};

} // namespace

void accel::rt::cpu::gatherWindowRows(const WindowWalk &walk, const char *from,
                                      const ChannelRows &layout, Positions rows,
                                      char *to) {
  const auto &[depth, height, width] = walk.window;
  auto size = [&](int64_t runs) {
    return static_cast<size_t>(runs * layout.run);
  };
  bool areJoined = walk.step[2] == 1 && layout.position == layout.run;
  Counter position(rows.first, walk.positions);
  for (int64_t row = 0; row < rows.count; ++row, position.next()) {
    const char *sample = from + position.sample * layout.sample;
    Inside planes(walk, 0, position.at[0]), lines(walk, 1, position.at[1]),
        line(walk, 2, position.at[2]);
    int64_t inside = line.end - line.begin;
    for (int64_t z = 0; z < depth; ++z) {
      if (z < planes.begin || z >= planes.end) {
        std::memset(to, 0, size(height * width));
        to += size(height * width);
        continue;
      }
      for (int64_t y = 0; y < height; ++y, to += size(width)) {
        if (y < lines.begin || y >= lines.end || inside == 0) {
          std::memset(to, 0, size(width));
          continue;
        }
        int64_t first =
            (planes.element(z) * walk.elements[1] + lines.element(y)) *
            walk.elements[2];
        auto find = [&](int64_t x) {
          return sample + (first + line.element(x)) * layout.position;
        };
        std::memset(to, 0, size(line.begin));
        if (areJoined)
          std::memcpy(to + size(line.begin), find(line.begin), size(inside));
        else
          for (int64_t x = line.begin; x < line.end; ++x)
            std::memcpy(to + size(x), find(x), size(1));
        std::memset(to + size(line.end), 0, size(width - line.end));
      }
    }
  }
}

namespace {
template <class T>
void scatter(const WindowWalk &walk, int64_t place, const T *rows,
             Positions positions, int64_t channels, int64_t stride, T *to) {
  Counter at(place, walk.window), position(positions.first, walk.positions);
  for (int64_t row = 0; row < positions.count; ++row, position.next()) {
    int64_t element = 0;
    bool isInside = true;
    for (int dim = 0; dim < 3; ++dim) {
      Inside places(walk, dim, position.at[dim]);
      isInside = isInside && places.has(walk.elements[dim], at.at[dim]);
      element = element * walk.elements[dim] + places.element(at.at[dim]);
    }
    if (!isInside)
      continue;
    T *target = to + element * stride;
    const T *terms = rows + row * channels;
    for (int64_t channel = 0; channel < channels; ++channel)
      target[channel] += terms[channel];
  }
}
} // namespace

void accel::rt::cpu::scatterWindowRows(const WindowWalk &walk, int64_t place,
                                       GemmType type, const void *rows,
                                       Positions positions, int64_t channels,
                                       int64_t stride, void *to) {
  if (type == GemmType::F64)
    scatter(walk, place, static_cast<const double *>(rows), positions, channels,
            stride, static_cast<double *>(to));
  else
    scatter(walk, place, static_cast<const float *>(rows), positions, channels,
            stride, static_cast<float *>(to));
}
