// Import of padding: by a constant, and by elements of the tensor.

#include "lib/Import/OpTable.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// Which of `size` elements stands at `at`, which may be before the first or
/// behind the last.
static int64_t findPadding(StringRef mode, int64_t at, int64_t size) {
  if (mode == "edge" || size == 1)
    return std::clamp<int64_t>(at, 0, size - 1);
  int64_t period = mode == "wrap" ? size : 2 * (size - 1);
  int64_t place = (at % period + period) % period;
  return place < size ? place : period - place;
}

/// The value with elements of its own before and behind each dimension.
static Value padByElements(Importer &n, Value value, StringRef mode,
                           ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
  for (int64_t dim = 0; dim < int64_t(low.size()); ++dim) {
    if (low[dim] == 0 && high[dim] == 0)
      continue;
    int64_t size = Importer::shape(value)[dim];
    constexpr int64_t kMost = int64_t(1) << 24;
    if (n.hasFailed() || size == 0 || low[dim] > kMost || high[dim] > kMost) {
      n.error() << "expected elements to pad with, and at most " << kMost
                << " pads, found " << low[dim] << " and " << high[dim] << " of "
                << size;
      return nullptr;
    }
    SmallVector<int64_t> places;
    for (int64_t at = -low[dim]; at < size + high[dim]; ++at)
      places.push_back(findPadding(mode, at, size));
    value = n.create<nn::GatherOp>(
        {value, n.ints(places, {int64_t(places.size())})},
        {n.named("dim", dim), n.unit("non_negative")});
  }
  return value;
}

static LogicalResult importPad(Importer &n) {
  std::string mode = n.stringAttr("mode", "constant");
  bool isConstant = mode == "constant";
  if (!isConstant && mode != "edge" && mode != "reflect" &&
      (mode != "wrap" || n.version < 19))
    return n.error() << "expected 'mode' to be 'constant', 'edge', 'reflect' "
                        "or, from opset 19 on, 'wrap', found '"
                     << mode << "'";
  Value x = n.operand(0);
  int64_t rank = Importer::rank(x);
  SmallVector<int64_t> pads = n.constantInts(1), axes;
  if (n.operand(3))
    axes = n.constantInts(3);
  else
    llvm::append_range(axes, llvm::seq<int64_t>(rank));
  if (n.hasFailed())
    return failure();
  if (pads.size() != 2 * axes.size())
    return n.error() << "expected " << 2 * axes.size() << " pads, found "
                     << pads.size();
  Value value = n.operand(2);
  if (!value)
    value = n.splat({}, Importer::element(x), 0);
  else
    value = n.reshape(value, {});
  // What is cut off by negative pads goes first.
  SmallVector<int64_t> low(rank, 0), high(rank, 0), starts(rank, 0);
  SmallVector<int64_t> sizes(Importer::shape(x)), steps(rank, 1);
  for (auto [index, axis] : llvm::enumerate(axes)) {
    int64_t dim = n.normalizeAxis(axis, rank);
    if (n.hasFailed())
      return failure();
    int64_t before = pads[index], after = pads[index + axes.size()];
    constexpr int64_t kMost = int64_t(1) << 56;
    if (std::min(before, after) < -kMost || std::max(before, after) > kMost ||
        llvm::is_contained(ArrayRef(axes).take_front(index), axis))
      return n.error() << "expected pads that can be added, of each dimension "
                          "once, found ["
                       << pads << "] for [" << axes << "]";
    starts[dim] = std::max<int64_t>(0, -before);
    sizes[dim] -= starts[dim] + std::max<int64_t>(0, -after);
    low[dim] = std::max<int64_t>(0, before);
    high[dim] = std::max<int64_t>(0, after);
    if (sizes[dim] < 0)
      return n.error() << "cannot cut " << -before << " and " << -after
                       << " off dimension #" << dim << " of " << x.getType();
  }
  Value kept = n.create<nn::SliceOp>(x, {n.named("starts", starts),
                                         n.named("sizes", sizes),
                                         n.named("steps", steps)});
  if (!isConstant)
    return n.finish(padByElements(n, kept, mode, low, high));
  return n.finish(n.create<nn::PadOp>(
      {kept, value}, {n.named("low", low), n.named("high", high)}));
}

/// The middle of what is too long, zeros around what is too short; of an odd
/// difference the end has more.
static LogicalResult importCenterCropPad(Importer &n) {
  Value x = n.operand(0);
  SmallVector<int64_t> sizes = n.constantInts(1);
  auto axes = n.intsAttr("axes");
  if (n.hasFailed())
    return failure();
  SmallVector<int64_t> dims =
      axes ? *axes : llvm::to_vector(llvm::seq<int64_t>(Importer::rank(x)));
  if (dims.size() != sizes.size() ||
      llvm::any_of(sizes, [](int64_t size) { return size < 0; }))
    return n.error() << "expected a size of at least 0 for each of "
                     << dims.size() << " axes, found [" << sizes << "]";
  for (auto [dim, size] : llvm::zip(dims, sizes)) {
    dim = n.normalizeAxis(dim, Importer::rank(x));
    if (n.hasFailed())
      return failure();
    int64_t own = Importer::shape(x)[dim];
    if (own >= size) {
      x = n.slice(x, dim, (own - size) / 2, size);
      continue;
    }
    SmallVector<int64_t> low(Importer::rank(x), 0), high = low;
    low[dim] = (size - own) / 2;
    high[dim] = size - own - low[dim];
    x = n.create<nn::PadOp>({x, n.splat({}, Importer::element(x), 0)},
                            {n.named("low", low), n.named("high", high)});
  }
  return n.finish(x);
}

ArrayRef<OpRow> accel::import::paddingOps() {
  static const OpRow rows[] = {
      {"", "CenterCropPad", 18, 2, 2, importCenterCropPad},
      {"", "Pad", 11, 2, 4, importPad}};
  return rows;
}
