// Rows against rows: two views of one stride meet where their rows are close,
// and those of different strides row by row.

#include "Format/Overlap.h"

#include <algorithm>

namespace accel::rt::format {
namespace {

/// A dimension of more than one element, in bytes.
struct Dim {
  int64_t stride, size;
};

/// The bytes of a view: runs of `run` bytes at the places of `dims`, the
/// largest strides first.
struct Layout {
  std::vector<Dim> dims;
  int64_t run;

  explicit Layout(const View &view) : run(dtypeBytes(view.dtype)) {
    for (size_t i = 0; i < view.shape.size(); ++i)
      if (view.shape[i] > 1 && view.strides[i] > 0)
        dims.push_back(
            {view.strides[i] * dtypeBytes(view.dtype), view.shape[i]});
    std::sort(dims.begin(), dims.end(),
              [](Dim x, Dim y) { return x.stride > y.stride; });
    while (!dims.empty() && dims.back().stride <= run) {
      run += (dims.back().size - 1) * dims.back().stride;
      dims.pop_back();
    }
  }
  /// Bytes from the first to the last, from dimension `from` on.
  int64_t extent(size_t from) const {
    int64_t bytes = run;
    for (size_t i = from; i < dims.size(); ++i)
      bytes += (dims[i].size - 1) * dims[i].stride;
    return bytes;
  }
};

/// Compares at most so many rows.
constexpr int64_t kMostRows = 1 << 14;

bool meet(int64_t a, const Layout &one, size_t i, int64_t b,
          const Layout &other, size_t j, int64_t &rows) {
  int64_t aExtent = one.extent(i), bExtent = other.extent(j);
  if (a + aExtent <= b || b + bExtent <= a)
    return false;
  if (i == one.dims.size() && j == other.dims.size())
    return true;
  if (--rows < 0)
    return true;
  const Dim x = i < one.dims.size() ? one.dims[i] : Dim{0, 1},
            y = j < other.dims.size() ? other.dims[j] : Dim{0, 1};
  if (x.stride < y.stride)
    return meet(b, other, j, a, one, i, rows);
  auto floorDiv = [&](int64_t value) {
    return value / x.stride - (value % x.stride < 0);
  };
  int64_t aRow = one.extent(i + 1);
  if (x.stride == y.stride) {
    // How many rows further on `other` may be.
    int64_t low =
                std::max(floorDiv(a - other.extent(j + 1) - b) + 1, 1 - x.size),
            high = std::min(floorDiv(a + aRow - 1 - b), y.size - 1);
    for (int64_t d = low; d <= high; ++d)
      if (meet(a, one, i + 1, b + d * x.stride, other, j + 1, rows))
        return true;
    return false;
  }
  int64_t first = std::max<int64_t>(floorDiv(b - aRow - a) + 1, 0),
          last = std::min(floorDiv(b + bExtent - 1 - a), x.size - 1);
  for (int64_t row = first; row <= last; ++row)
    if (meet(a + row * x.stride, one, i + 1, b, other, j, rows))
      return true;
  return false;
}

bool contains(const std::vector<View> &views, const View &view) {
  return !views.empty() && &view >= views.data() &&
         &view < views.data() + views.size();
}

} // namespace

bool shareBytes(int64_t aBegin, const View &a, int64_t bBegin, const View &b) {
  int64_t rows = kMostRows;
  return meet(aBegin, Layout(a), 0, bBegin, Layout(b), 0, rows);
}

bool mayShareBytes(const Command &command, const View &read,
                   const View &written, bool together) {
  if (auto *kernel = std::get_if<KernelCommand>(&command.what))
    return together && contains(kernel->inputs, read) &&
           contains(kernel->outputs, written);
  auto *collective = std::get_if<CollectiveCommand>(&command.what);
  if (!collective || !contains(collective->inputs, read) ||
      !contains(collective->outputs, written))
    return false;
  bool isSame = together && read.dtype == written.dtype &&
                read.shape == written.shape && read.strides == written.strides;
  return collective->kind == "all_gather" ||
         (collective->kind == "all_reduce" && isSame);
}

} // namespace accel::rt::format
