// Import of RoiAlign (He et al., arXiv:1703.06870) and DeformConv (Dai et al.,
// arXiv:1703.06211; masks: Zhu et al., arXiv:1811.11168).

#include "lib/Import/OpTable.h"
#include "lib/Import/Sampling.h"
#include "lib/Import/Windows.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;
using P = nn::ComparePredicate;

/// The elements around a place, held within the line; up to one element beyond
/// it the outermost counts, and farther out nothing.
static SmallVector<Tap> tapsOfRegion(Importer &n, Value place, int64_t size) {
  Value low = n.splatLike(place, 0),
        high = n.splatLike(place, double(size - 1));
  Value isNear = n.binary<nn::AndOp>(
      n.compare(P::ge, place, n.splatLike(place, -1)),
      n.compare(P::le, place, n.splatLike(place, double(size))));
  Value held = n.binary<nn::MinOp>(n.binary<nn::MaxOp>(place, low), high);
  SmallVector<Tap> taps = linearTaps(n, held, size);
  for (Tap &tap : taps)
    tap.weight = n.select(isNear, tap.weight, n.splatLike(tap.weight, 0));
  return taps;
}

/// Each region's mean in output_height × output_width bins, of
/// sampling_ratio × sampling_ratio places in each. Regions have no gradient,
/// as in torchvision.
static LogicalResult importRoiAlign(Importer &n) {
  Value x = n.operand(0), regions = n.stopGradient(n.operand(1)),
        picture = n.operand(2);
  std::string mode = n.stringAttr("mode", "avg"),
              pixels = n.stringAttr("coordinate_transformation_mode",
                                    n.version >= 16 ? "half_pixel"
                                                    : "output_half_pixel");
  int64_t high = n.intAttr("output_height", 1),
          wide = n.intAttr("output_width", 1),
          ratio = n.intAttr("sampling_ratio", 0);
  double scale = n.floatAttr("spatial_scale", 1);
  constexpr int64_t kMost = 1 << 12;
  if (mode != "avg" ||
      (pixels != "half_pixel" && pixels != "output_half_pixel"))
    return n.error() << "expected 'mode' avg and a "
                        "'coordinate_transformation_mode' half_pixel or "
                        "output_half_pixel, found '"
                     << mode << "' and '" << pixels << "'";
  if (ratio < 1 || ratio > kMost)
    return n.error() << "expected a 'sampling_ratio' of 1 or more: with 0 the "
                        "places of a region follow from its size, which only "
                        "the run knows; found "
                     << ratio;
  if (n.hasFailed())
    return failure();
  SmallVector<int64_t> shape(Importer::shape(x));
  int64_t count =
      Importer::rank(regions) == 2 ? Importer::shape(regions)[0] : 0;
  if (shape.size() != 4 || llvm::is_contained(shape, 0) ||
      !Importer::isFloat(x) || !Importer::isFloat(regions) ||
      Importer::isFloat(picture) || Importer::element(picture).isInteger(1) ||
      Importer::shape(regions) != ArrayRef<int64_t>({count, 4}) ||
      Importer::shape(picture) != ArrayRef<int64_t>(count) || high < 1 ||
      wide < 1 || high > kMost || wide > kMost)
    return n.error() << "expected pictures [N, C, H, W], regions [R, 4], a "
                        "picture's number for each and sizes of 1 to "
                     << kMost << ", found " << x.getType() << ", "
                     << regions.getType() << ", " << picture.getType() << ", "
                     << high << " and " << wide;
  bool isShifted = pixels == "half_pixel";
  auto places = [&](int64_t first, int64_t bins) {
    auto edge = [&](int64_t which) {
      Value at = n.scale(n.slice(regions, 1, which, 1), scale);
      return isShifted ? n.binary<nn::SubOp>(at, n.splatLike(at, 0.5)) : at;
    };
    Value from = edge(first), size = n.binary<nn::SubOp>(edge(first + 2), from);
    if (!isShifted)
      size = n.binary<nn::MaxOp>(size, n.splatLike(size, 1));
    Type element = Importer::element(regions);
    Value line = n.cast(n.iota(bins * ratio), element);
    line = n.scale(n.binary<nn::AddOp>(line, n.splatLike(line, 0.5)),
                   1.0 / double(bins * ratio));
    return n.binary<nn::AddOp>(
        from, n.binary<nn::MulOp>(size, n.reshape(line, {1, bins * ratio})));
  };
  int64_t rows = high * ratio, columns = wide * ratio;
  auto spread = [&](Value value, ArrayRef<int64_t> as) {
    return n.reshape(n.broadcast(n.reshape(value, as), {count, rows, columns}),
                     {count, rows * columns});
  };
  Value down = spread(places(1, high), {count, rows, 1}),
        along = spread(places(0, wide), {count, 1, columns});
  if (n.hasFailed())
    return failure();
  SmallVector<SmallVector<Tap>> taps{tapsOfRegion(n, down, shape[2]),
                                     tapsOfRegion(n, along, shape[3])};
  Value all = sample(n, tableOf(n, x),
                     n.cast(picture, n.graph.builder.getI64Type()), taps);
  all = n.mean(n.reshape(all, {count, high, ratio, wide, ratio, shape[1]}),
               {2, 4}, /*keepDims=*/false);
  return n.finish(n.transpose(all, {0, 3, 1, 2}));
}

/// A convolution each of whose taps reads where an offset moves it: X is
/// [N, C, H, W], the offset [N, groups · K · 2, OH, OW] with rows first, the
/// mask [N, groups · K, OH, OW].
static LogicalResult importDeformConv(Importer &n) {
  Value x = n.operand(0), weight = n.operand(1), offset = n.operand(2),
        bias = n.operand(3), mask = n.operand(4);
  int64_t groups = n.intAttr("group", 1), moved = n.intAttr("offset_group", 1);
  SmallVector<int64_t> shape(Importer::shape(x));
  if (shape.size() != 4 || Importer::rank(weight) != 4 ||
      llvm::is_contained(shape, 0))
    return n.error()
           << "expected an input [N, C, H, W] and a weight of rank 4, "
              "found "
           << x.getType() << " and " << weight.getType();
  ArrayRef<int64_t> kernel = Importer::shape(weight).drop_front(2);
  ArrayRef<int64_t> space = ArrayRef(shape).drop_front(2);
  std::optional<Windows> windows = readWindows(n, space, kernel);
  std::optional<SmallVector<int64_t>> sizes;
  if (windows)
    sizes = countWindows(n, space, *windows);
  if (!sizes || n.hasFailed())
    return failure();
  int64_t batch = shape[0], channels = shape[1],
          outputs = Importer::shape(weight)[0], taps = kernel[0] * kernel[1],
          places = (*sizes)[0] * (*sizes)[1];
  if (groups < 1 || moved < 1 || channels % groups != 0 ||
      outputs % groups != 0 || channels % moved != 0 ||
      Importer::shape(weight)[1] != channels / groups)
    return n.error() << "expected groups that divide the channels of "
                     << x.getType() << " and " << weight.getType() << ", found "
                     << groups << " and " << moved;
  auto check = [&](Value value, int64_t parts) {
    SmallVector<int64_t> expected{batch, moved * taps * parts, (*sizes)[0],
                                  (*sizes)[1]};
    if (!value || Importer::shape(value) == ArrayRef<int64_t>(expected))
      return true;
    n.error() << "expected offsets or a mask [" << expected << "], found "
              << value.getType();
    return false;
  };
  if (!check(offset, 2) || !check(mask, 1))
    return failure();
  // [N · groups, K · O] for rows, then columns.
  offset = n.reshape(offset, {batch * moved, taps, 2, places});
  int64_t all = batch * moved;
  SmallVector<SmallVector<Tap>> dims;
  for (int64_t dim = 0; dim < 2; ++dim) {
    Type element = Importer::element(offset);
    auto line = [&](int64_t count, int64_t step, int64_t low, bool isRow) {
      Value at = n.scale(n.cast(n.iota(count), element), double(step));
      at = n.binary<nn::SubOp>(at, n.splatLike(at, double(low)));
      return n.reshape(at, isRow ? ArrayRef<int64_t>{count, 1}
                                 : ArrayRef<int64_t>{1, count});
    };
    auto grid = [&](Value value, int64_t rows, int64_t columns, bool first) {
      return n.reshape(
          n.broadcast(value, {rows, columns}),
          {first ? rows * columns : 1, first ? 1 : rows * columns});
    };
    Value tap = grid(line(kernel[dim], windows->dilations[dim],
                          windows->low[dim], dim == 0),
                     kernel[0], kernel[1], true),
          out = grid(line((*sizes)[dim], windows->strides[dim], 0, dim == 0),
                     (*sizes)[0], (*sizes)[1], false);
    Value by = n.reshape(n.slice(offset, 2, dim, 1), {all, taps, places});
    Value place =
        n.reshape(n.binary<nn::AddOp>(by, n.binary<nn::AddOp>(tap, out)),
                  {all, taps * places});
    if (n.hasFailed())
      return failure();
    dims.push_back(linearTaps(n, place, space[dim]));
  }
  int64_t own = channels / moved;
  Value table = tableOf(n, n.reshape(x, {all, own, space[0], space[1]}));
  Value read = sample(n, table, n.iota(all), dims); // [N · groups, K · O, C]
  if (mask)
    read = n.binary<nn::MulOp>(read, n.reshape(mask, {all, taps * places, 1}));
  read = n.transpose(n.reshape(read, {batch, moved, taps, places, own}),
                     {0, 1, 4, 2, 3});
  read = n.reshape(read, {batch, groups, channels / groups * taps, places});
  weight = n.reshape(weight,
                     {1, groups, outputs / groups, channels / groups * taps});
  Value result = n.reshape(n.matmul(weight, read),
                           {batch, outputs, (*sizes)[0], (*sizes)[1]});
  if (bias)
    result = n.binary<nn::AddOp>(result, n.reshape(bias, {outputs, 1, 1}));
  return n.finish(result);
}

ArrayRef<OpRow> accel::import::regionOps() {
  static const OpRow rows[] = {
      {"", "DeformConv", 19, 3, 5, importDeformConv},
      {"", "RoiAlign", 10, 3, 3, importRoiAlign},
  };
  return rows;
}
