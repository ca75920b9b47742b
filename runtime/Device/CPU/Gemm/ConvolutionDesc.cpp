// How the tensors of a convolution lie: with channels first or last.

#include "Device/CPU/Gemm/Convolution.h"

using namespace accel::rt::cpu;

namespace {

/// Elements between positions, which `dims` dimensions number in row-major
/// order; 0 where there is one, none where they lie unevenly, backwards or at
/// one place.
std::optional<int64_t> getStep(const ConvolutionDesc::Space &sizes,
                               const int64_t *strides, size_t dims) {
  int64_t step = 0, next = 0;
  for (size_t back = 1; back <= dims; ++back) {
    int64_t size = sizes[3 - back], stride = strides[dims - back];
    if (size == 1)
      continue;
    if (step == 0)
      step = next = stride;
    if (stride <= 0 || stride != next)
      return std::nullopt;
    next *= size;
  }
  return step;
}

/// Whether a matrix has rows, or columns, whose elements follow each other.
bool isMatrix(int64_t rows, int64_t row, int64_t columns, int64_t column) {
  return rows == 1 || columns == 1 || row == 1 || column == 1;
}

/// Whether `inner` elements, `step` apart, come again `outer` times without a
/// break: as one list.
bool isOneList(int64_t outer, int64_t stride, int64_t inner, int64_t step) {
  return outer == 1 || inner == 1 || stride == inner * step;
}

} // namespace

bool ConvolutionDesc::isPointwise() const {
  const Space ones{1, 1, 1}, zeros{0, 0, 0};
  return window == ones && stride == ones && low == zeros && in == out;
}

bool ConvolutionDesc::layOut(const int64_t *ofX, const int64_t *ofW,
                             const int64_t *ofY, size_t dims) {
  auto xStep = getStep(in, ofX + 3, dims), yStep = getStep(out, ofY + 3, dims),
       wStep = getStep(window, ofW + 3, dims);
  if (!xStep || !yStep || !wStep)
    return false;
  x = {ofX[0], ofX[1], ofX[2], *xStep};
  y = {ofY[0], ofY[1], ofY[2], *yStep};
  w = {ofW[0], ofW[1], ofW[2], *wStep};
  int64_t places = count(window);
  bool isFirst = *xStep <= 1 && *yStep <= 1 && *wStep <= 1 &&
                 (channels == 1 || w[2] == places);
  bool isLast = (channels == 1 || x[2] == 1) && (outChannels == 1 || y[2] == 1);
  // The matrix that windows are multiplied by: places and the channels that are
  // summed over are its rows.
  if (kind == ConvolutionKind::Forward)
    isLast = isLast && isOneList(places, w[3], channels, w[2]) &&
             isMatrix(places * channels, channels == 1 ? w[3] : w[2],
                      outChannels, w[1]);
  if (kind == ConvolutionKind::InputGrad)
    isLast = isLast && isMatrix(outChannels, w[1], channels, w[2]) &&
             (stride != Space{1, 1, 1} ||
              isOneList(places, w[3], outChannels, w[1]));
  bool isOnePosition = count(in) == 1 && count(out) == 1;
  channelsLast = isLast && (isOnePosition || !isFirst);
  if (!channelsLast) {
    // Elements of one position have no step of their own.
    x[3] = y[3] = w[3] = 1;
    w[2] = places;
  }
  return isFirst || isLast;
}
