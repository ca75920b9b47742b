// Windows over space.

#include "Windows.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// A list of one number of at least `least` per dimension of space.
static bool readList(Importer &n, StringRef name, size_t count, int64_t least,
                     int64_t fallback, SmallVectorImpl<int64_t> &values) {
  values.assign(count, fallback);
  std::optional<SmallVector<int64_t>> given = n.intsAttr(name);
  if (!given)
    return !n.hasFailed();
  if (given->size() != count || llvm::any_of(*given, [&](int64_t value) {
        return value < least || value > (int64_t(1) << 40);
      })) {
    n.error() << "expected '" << name << "' to be " << count
              << " numbers of at least " << least << ", found [" << *given
              << "]";
    return false;
  }
  values.assign(given->begin(), given->end());
  return true;
}

std::optional<Windows>
import::readWindows(Importer &n, ArrayRef<int64_t> sizes,
                    std::optional<ArrayRef<int64_t>> kernel) {
  Windows windows;
  size_t space = sizes.size();
  if (space < 1 || space > 3) {
    n.error() << "expected one to three dimensions of space, found " << space;
    return std::nullopt;
  }
  if (!kernel && !n.hasAttribute("kernel_shape")) {
    n.error() << "expected an attribute 'kernel_shape', found none";
    return std::nullopt;
  }
  SmallVector<int64_t> pads;
  if (!readList(n, "kernel_shape", space, 1, 1, windows.kernel) ||
      !readList(n, "strides", space, 1, 1, windows.strides) ||
      !readList(n, "dilations", space, 1, 1, windows.dilations) ||
      !readList(n, "pads", 2 * space, 0, 0, pads))
    return std::nullopt;
  if (kernel) {
    if (n.hasAttribute("kernel_shape") &&
        ArrayRef<int64_t>(windows.kernel) != *kernel) {
      n.error() << "expected 'kernel_shape' to be the weight's [" << *kernel
                << "], found [" << windows.kernel << "]";
      return std::nullopt;
    }
    windows.kernel.assign(kernel->begin(), kernel->end());
  }
  windows.low.assign(pads.begin(), pads.begin() + space);
  windows.high.assign(pads.begin() + space, pads.end());
  std::string mode = n.stringAttr("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    for (size_t dim = 0; dim < space; ++dim) {
      int64_t stride = windows.strides[dim];
      int64_t count = llvm::divideCeil(sizes[dim], stride);
      int64_t total = std::max<int64_t>(
          (count - 1) * stride + windows.extent(dim) - sizes[dim], 0);
      windows.low[dim] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      windows.high[dim] = total - windows.low[dim];
    }
  } else if (mode == "VALID") {
    windows.low.assign(space, 0);
    windows.high.assign(space, 0);
  } else if (mode != "NOTSET") {
    n.error() << "expected 'auto_pad' to be 'NOTSET', 'SAME_UPPER', "
                 "'SAME_LOWER' or 'VALID', found '"
              << mode << "'";
    return std::nullopt;
  }
  return windows;
}

std::optional<SmallVector<int64_t>>
import::countWindows(Importer &n, ArrayRef<int64_t> sizes,
                     const Windows &windows, bool roundUp) {
  SmallVector<int64_t> counts;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    int64_t stride = windows.strides[dim];
    int64_t last =
        sizes[dim] + windows.low[dim] + windows.high[dim] - windows.extent(dim);
    if (last < 0) {
      n.error() << "expected windows of at most " << last + windows.extent(dim)
                << " elements, found " << windows.extent(dim)
                << " in dimension #" << dim << " of space";
      return std::nullopt;
    }
    int64_t count = last / stride + 1;
    // One that begins in the high padding has nothing to see.
    if (roundUp && last % stride != 0 &&
        count * stride < sizes[dim] + windows.low[dim])
      ++count;
    counts.push_back(count);
  }
  return counts;
}

/// Whether the places of windows along a dimension are few enough to be a
/// constant of the program; an error if they are not.
static bool checkPlaces(Importer &n, int64_t count, int64_t size) {
  constexpr int64_t kMostPlaces = int64_t(1) << 24;
  if (count <= kMostPlaces / std::max<int64_t>(size, 1))
    return true;
  n.error() << "expected windows that have at most " << kMostPlaces
            << " elements along a dimension, found " << count << " of " << size;
  return false;
}

Value import::padForWindows(Importer &n, Value value, const Windows &windows,
                            ArrayRef<int64_t> counts, Value outside) {
  if (n.hasFailed())
    return nullptr;
  size_t space = windows.space(), lead = Importer::rank(value) - space;
  SmallVector<int64_t> low(lead, 0), high(lead, 0);
  for (size_t dim = 0; dim < space; ++dim) {
    int64_t end = (counts[dim] - 1) * windows.strides[dim] +
                  windows.extent(dim) - windows.low[dim];
    low.push_back(windows.low[dim]);
    high.push_back(
        std::max<int64_t>(0, end - Importer::shape(value)[lead + dim]));
  }
  auto isZero = [](int64_t count) { return count == 0; };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return value;
  return n.create<nn::PadOp>({value, outside},
                             {n.named("low", low), n.named("high", high)});
}

Value import::gatherWindows(Importer &n, Value value, const Windows &windows,
                            ArrayRef<int64_t> counts, Value outside) {
  value = padForWindows(n, value, windows, counts, outside);
  if (n.hasFailed())
    return nullptr;
  size_t space = windows.space(), lead = Importer::rank(value) - space;
  // From the last dimension on, so that those before it stay where they are.
  for (size_t back = 0; back < space; ++back) {
    size_t dim = space - 1 - back, at = lead + dim;
    int64_t size = windows.kernel[dim], stride = windows.strides[dim],
            dilation = windows.dilations[dim], count = counts[dim];
    if (stride == size && dilation == 1) {
      value = n.slice(value, at, 0, count * size);
      SmallVector<int64_t> shape(Importer::shape(value));
      if (n.hasFailed())
        return nullptr;
      shape[at] = count;
      shape.insert(shape.begin() + at + 1, size);
      value = n.reshape(value, shape);
      continue;
    }
    if (!checkPlaces(n, count, size))
      return nullptr;
    SmallVector<int64_t> places;
    for (int64_t window = 0; window < count; ++window)
      for (int64_t place = 0; place < size; ++place)
        places.push_back(window * stride + place * dilation);
    value = n.create<nn::GatherOp>(
        {value, n.ints(places, {count, size})},
        {n.named("dim", int64_t(at)), n.unit("non_negative")});
  }
  SmallVector<int64_t> permutation =
      llvm::to_vector(llvm::seq<int64_t>(0, lead));
  for (int64_t part : {0, 1})
    for (size_t dim = 0; dim < space; ++dim)
      permutation.push_back(lead + 2 * dim + part);
  return n.transpose(value, permutation);
}

Value import::scatterWindows(Importer &n, Value value, const Windows &windows,
                             ArrayRef<int64_t> sizes) {
  int64_t space = windows.space(), lead = Importer::rank(value) - 2 * space;
  // Each step takes the first pair of positions and places behind `lead`, and
  // leaves a dimension of space last.
  for (int64_t dim = 0; dim < space && !n.hasFailed(); ++dim) {
    int64_t pairs = space - dim, places = lead + pairs;
    SmallVector<int64_t> shape(Importer::shape(value));
    int64_t count = shape[lead], size = shape[places],
            stride = windows.strides[dim], dilation = windows.dilations[dim],
            low = windows.low[dim];
    if (!checkPlaces(n, count, size))
      return nullptr;
    // Rows of all else are added up along the first dimension.
    SmallVector<int64_t> order{lead, places};
    for (int64_t at = 0, rank = shape.size(); at < rank; ++at)
      if (at != lead && at != places)
        order.push_back(at);
    value = n.transpose(value, order);
    SmallVector<int64_t> whole(ArrayRef(Importer::shape(value)).drop_front(2));
    int64_t extent =
        std::max((count - 1) * stride + windows.extent(dim), low + sizes[dim]);
    whole.insert(whole.begin(), extent);
    SmallVector<int64_t> indices;
    for (int64_t window = 0; window < count; ++window)
      for (int64_t place = 0; place < size; ++place)
        indices.push_back(window * stride + place * dilation);
    value = n.create<nn::ScatterAddOp>(
        {n.splat(whole, Importer::element(value), 0),
         n.ints(indices, {count, size}), value},
        {n.named("dim", int64_t(0)), n.named("batch_dims", int64_t(0))});
    value = n.slice(value, 0, low, sizes[dim]);
    if (!value)
      return nullptr;
    SmallVector<int64_t> back =
        llvm::to_vector(llvm::seq<int64_t>(1, Importer::rank(value)));
    back.push_back(0);
    value = n.transpose(value, back);
  }
  return value;
}
