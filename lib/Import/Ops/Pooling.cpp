// Import of pooling: reductions over the elements of windows.

#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"
#include "lib/Import/Windows.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

namespace {
/// A pooling's operand cut into windows: of [N, C, S…] there are `counts`.
struct Pooled {
  Windows windows;
  SmallVector<int64_t> counts;

  /// The dimensions of the windows' own elements.
  SmallVector<int64_t> elementDims(int64_t rank) const {
    return llvm::to_vector(
        llvm::seq<int64_t>(rank, rank + int64_t(counts.size())));
  }
};
} // namespace

static std::optional<Pooled> readPooled(Importer &n) {
  Value x = n.operand(0);
  if (Importer::rank(x) < 3) {
    n.error() << "expected an operand [N, C, S…], found " << x.getType();
    return std::nullopt;
  }
  ArrayRef<int64_t> space = Importer::shape(x).drop_front(2);
  bool roundUp = n.intAttr("ceil_mode", 0) != 0;
  std::optional<Windows> windows = readWindows(n, space, std::nullopt);
  if (!windows)
    return std::nullopt;
  // A window all of whose elements are outside has no extreme, and no mean.
  for (size_t dim = 0; dim < space.size(); ++dim)
    if (windows->low[dim] >= windows->extent(dim) ||
        windows->high[dim] >= windows->extent(dim)) {
      n.error() << "expected pads that are smaller than the window of "
                << windows->extent(dim) << " elements, found "
                << windows->low[dim] << " and " << windows->high[dim];
      return std::nullopt;
    }
  // Rounded up, one that is larger than all there is sees it.
  for (size_t dim = 0; dim < space.size(); ++dim) {
    int64_t all = space[dim] + windows->low[dim] + windows->high[dim],
            outside = windows->extent(dim) - all;
    if (roundUp && outside > 0 && outside < windows->strides[dim] &&
        windows->dilations[dim] == 1)
      windows->kernel[dim] = all;
  }
  std::optional<SmallVector<int64_t>> counts =
      countWindows(n, space, *windows, roundUp);
  if (!counts)
    return std::nullopt;
  return Pooled{*windows, *counts};
}

/// How many elements of each window count: those inside, and with `withPads`
/// those in the pads. Behind these none does.
static SmallVector<double>
countElements(const Pooled &pooled, ArrayRef<int64_t> space, bool withPads) {
  SmallVector<double> numbers{1};
  for (size_t dim = 0; dim < space.size(); ++dim) {
    const Windows &windows = pooled.windows;
    int64_t low = withPads ? -windows.low[dim] : 0,
            end = space[dim] + (withPads ? windows.high[dim] : 0);
    SmallVector<double> outer;
    for (double before : numbers)
      for (int64_t window = 0; window < pooled.counts[dim]; ++window) {
        int64_t count = 0;
        for (int64_t place = 0; place < windows.kernel[dim]; ++place) {
          int64_t at = window * windows.strides[dim] - windows.low[dim] +
                       place * windows.dilations[dim];
          count += at >= low && at < end;
        }
        outer.push_back(before * count);
      }
    numbers = std::move(outer);
  }
  return numbers;
}

/// Of windows of more elements slices would be many ops.
static constexpr int64_t kMostSlices = 16;

/// What the elements of each window come to, two after two, as combinations of
/// slices along one dimension after another, the last one first: elements stay
/// in the order of the operand, whichever this is. Null where there are too
/// many.
static Value combineSlices(Importer &n, const Pooled &pooled, Value outside,
                           llvm::function_ref<Value(Value, Value)> combine) {
  const Windows &windows = pooled.windows;
  if (llvm::any_of(windows.kernel,
                   [](int64_t size) { return size > kMostSlices; }))
    return nullptr;
  Value value = padForWindows(n, n.operand(0), windows, pooled.counts, outside);
  for (size_t dim = windows.space(); dim-- > 0 && !n.hasFailed();) {
    int64_t at = int64_t(dim) + 2;
    SmallVector<int64_t> shape(Importer::shape(value)), starts(shape.size(), 0),
        steps(shape.size(), 1);
    shape[at] = pooled.counts[dim];
    steps[at] = windows.strides[dim];
    Value combined;
    for (int64_t place = 0; place < windows.kernel[dim]; ++place) {
      starts[at] = place * windows.dilations[dim];
      Value slice = n.create<nn::SliceOp>(value, {n.named("starts", starts),
                                                  n.named("sizes", shape),
                                                  n.named("steps", steps)});
      if (n.hasFailed())
        return nullptr;
      combined = combined ? combine(combined, slice) : slice;
    }
    value = combined;
  }
  return value;
}

static LogicalResult importAveragePool(Importer &n) {
  Value x = n.operand(0);
  bool withPads = n.intAttr("count_include_pad", 0) != 0;
  std::optional<Pooled> pooled = readPooled(n);
  if (!pooled)
    return failure();
  Type element = Importer::element(x);
  if (!isa<FloatType>(element))
    return n.error() << "expected floats to take the mean of, found "
                     << x.getType();
  Value zero = n.splat({}, element, 0);
  SmallVector<double> numbers =
      countElements(*pooled, Importer::shape(x).drop_front(2), withPads);
  int64_t all = ShapedType::getNumElements(pooled->windows.kernel);
  Value sum = combineSlices(n, *pooled, zero, [&](Value a, Value b) {
    return n.binary<nn::AddOp>(a, b);
  });
  if (!sum)
    sum = n.reduce(nn::ReductionKind::sum,
                   gatherWindows(n, x, pooled->windows, pooled->counts, zero),
                   pooled->elementDims(Importer::rank(x)), /*keepDims=*/false);
  if (!sum)
    return failure();
  if (llvm::all_of(numbers, [&](double count) { return count == all; }))
    return n.finish(n.scale(sum, 1.0 / double(all)));
  auto number = cast<FloatType>(element);
  SmallVector<APFloat> rounded =
      llvm::map_to_vector(numbers, [&](double count) {
        APFloat value(count);
        bool isInexact;
        value.convert(number.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                      &isInexact);
        return value;
      });
  Value counts = n.constant(DenseElementsAttr::get(
      RankedTensorType::get(pooled->counts, element), rounded));
  return n.finish(n.binary<nn::DivOp>(sum, counts));
}

/// The p-norm of each window: (sum of |x|^p)^(1/p).
static LogicalResult importLpPool(Importer &n) {
  int64_t p = n.intAttr("p", 2);
  std::optional<Pooled> pooled = readPooled(n);
  if (!pooled)
    return failure();
  if (p < 1)
    return n.error() << "expected 'p' of at least 1, found " << p;
  Value x = n.operand(0);
  Value windows =
      gatherWindows(n, n.unary<nn::AbsOp>(x), pooled->windows, pooled->counts,
                    n.splat({}, Importer::element(x), 0));
  auto power = [&](Value value, double exponent) {
    return n.hasFailed()
               ? Value()
               : n.binary<nn::PowOp>(value, n.splatLike(value, exponent));
  };
  Value sum = n.reduce(nn::ReductionKind::sum, power(windows, double(p)),
                       pooled->elementDims(Importer::rank(x)),
                       /*keepDims=*/false);
  return n.finish(power(sum, 1. / double(p)));
}

/// Where each window's largest element is in the operand: the first one.
static Value findLargest(Importer &n, const Pooled &pooled, Value windows,
                         Value largest) {
  ArrayRef<int64_t> shape = Importer::shape(n.operand(0)),
                    sizes = shape.drop_front(2);
  size_t space = sizes.size();
  if (n.hasFailed())
    return nullptr;
  bool columnMajor = n.intAttr("storage_order", 0) != 0;
  int64_t plane = ShapedType::getNumElements(sizes);
  SmallVector<int64_t> numbers; // of each element of a plane
  for (int64_t index = 0; index < plane; ++index) {
    int64_t rest = index, number = 0, step = 1;
    SmallVector<int64_t> at(space);
    for (size_t dim = space; dim-- > 0; rest /= sizes[dim])
      at[dim] = rest % sizes[dim];
    for (size_t place = 0; place < space; ++place) {
      size_t dim = columnMajor ? place : space - 1 - place;
      number += at[dim] * step;
      step *= sizes[dim];
    }
    numbers.push_back(number);
  }
  constexpr int64_t kNone = int64_t(1) << 62;
  Value none = n.ints({kNone}, {});
  Value places = gatherWindows(n, n.ints(numbers, sizes), pooled.windows,
                               pooled.counts, none);
  if (n.hasFailed())
    return nullptr;
  SmallVector<int64_t> kept(Importer::shape(largest)), planes(kept.size(), 1);
  kept.append(space, 1);
  std::copy_n(shape.begin(), 2, planes.begin());
  Value isLargest =
      n.compare(nn::ComparePredicate::eq, windows, n.reshape(largest, kept));
  Value first =
      n.reduce(nn::ReductionKind::min, n.select(isLargest, places, none),
               pooled.elementDims(shape.size()), /*keepDims=*/false);
  SmallVector<int64_t> begins;
  for (int64_t index = 0; index < shape[0] * shape[1]; ++index)
    begins.push_back(index * plane);
  return n.binary<nn::AddOp>(first, n.ints(begins, planes));
}

/// The largest of the elements along the dimensions from `begin` on. PyTorch's
/// gradient goes to the first of several, in row-major order.
static Value reduceToLargest(Importer &n, Value value, int64_t begin) {
  if (n.hasFailed())
    return nullptr;
  SmallVector<int64_t> shape(Importer::shape(value).take_front(begin));
  shape.push_back(
      ShapedType::getNumElements(Importer::shape(value).drop_front(begin)));
  return n.reduce(nn::ReductionKind::max, n.reshape(value, shape), {begin},
                  /*keepDims=*/false, /*first=*/true);
}

static LogicalResult importMaxPool(Importer &n) {
  Value x = n.operand(0);
  std::optional<Pooled> pooled = readPooled(n);
  if (!pooled)
    return failure();
  Value outside = n.getNeutral(nn::ReductionKind::max, Importer::element(x));
  if (!n.wantsResult(1)) {
    n.ignoreAttr("storage_order");
    // The largest of the largest of rows is in the first row that has it, at
    // the first place there. NaN stays.
    using P = nn::ComparePredicate;
    Value largest =
        combineSlices(n, *pooled, outside, [&](Value before, Value next) {
          Value isKept = n.binary<nn::OrOp>(n.compare(P::le, next, before),
                                            n.compare(P::ne, before, before));
          return n.select(isKept, before, next);
        });
    if (largest || n.hasFailed())
      return n.finish(largest);
  }
  Value windows = gatherWindows(n, x, pooled->windows, pooled->counts, outside);
  Value largest = reduceToLargest(n, windows, Importer::rank(x));
  n.setResult(1, findLargest(n, *pooled, windows, largest));
  return n.finish(largest);
}

/// Over all of space.
static LogicalResult importGlobalPool(Importer &n, bool isMean) {
  Value x = n.operand(0);
  if (Importer::rank(x) < 3)
    return n.error() << "expected an operand [N, C, S…], found " << x.getType();
  if (isMean)
    return n.finish(
        n.mean(x, llvm::to_vector(llvm::seq<int64_t>(2, Importer::rank(x))),
               /*keepDims=*/true));
  SmallVector<int64_t> shape(Importer::shape(x).take_front(2));
  shape.append(Importer::rank(x) - 2, 1);
  return n.finish(n.reshape(reduceToLargest(n, x, 2), shape));
}

static LogicalResult importGlobalAveragePool(Importer &n) {
  return importGlobalPool(n, /*isMean=*/true);
}
static LogicalResult importGlobalMaxPool(Importer &n) {
  return importGlobalPool(n, /*isMean=*/false);
}

ArrayRef<OpRow> accel::import::poolingOps() {
  static const OpRow rows[] = {
      {"", "AveragePool", 7, 1, 1, importAveragePool},
      {"", "GlobalAveragePool", 1, 1, 1, importGlobalAveragePool},
      {"", "GlobalMaxPool", 1, 1, 1, importGlobalMaxPool},
      {"", "LpPool", 2, 1, 1, importLpPool},
      {"", "MaxPool", 1, 1, 1, importMaxPool},
  };
  return rows;
}
