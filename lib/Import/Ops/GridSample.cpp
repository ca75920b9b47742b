// Import of GridSample (Jaderberg et al., arXiv:1506.02025) and AffineGrid:
// what stands between the elements of a picture, at places that the model
// computes. Padding and roundings are PyTorch's, from which ONNX has the
// operators; a place that is no finite number is beyond the picture.

#include "lib/Import/Kinks.h"
#include "lib/Import/OpTable.h"
#include "lib/Import/Sampling.h"
#include "lib/Import/Tensors.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;
using P = nn::ComparePredicate;

namespace {
enum class Padding { Zeros, Border, Reflection };

/// One dimension of space: how far it reaches, and what is beyond.
struct Line {
  int64_t size;
  bool alignsCorners;
  Padding padding;
};

} // namespace

/// From [-1, 1], which are the centres of the outermost elements or their outer
/// edges, to places of elements.
static Value findPlace(Importer &n, Value at, const Line &line) {
  double size = double(line.size),
         factor = line.alignsCorners ? size - 1 : size;
  Value moved = n.scale(n.plus(at, 1), factor / 2);
  return line.alignsCorners ? moved : n.plus(moved, -0.5);
}

static Value clipToLine(Importer &n, Value place, const Line &line) {
  return clip(n, place, n.splatLike(place, 0),
              n.splatLike(place, double(line.size - 1)), /*strict=*/true);
}

/// Beyond an edge back again, as often as it takes.
static Value reflect(Importer &n, Value place, const Line &line) {
  double low = line.alignsCorners ? 0 : -0.5,
         span = double(line.size) - (line.alignsCorners ? 1 : 0);
  if (span == 0)
    return n.scale(place, 0);
  Value from = n.unary<nn::AbsOp>(n.plus(place, -low));
  Value rest = n.binary<nn::ModOp>(from, n.splatLike(from, span));
  Value turns = n.unary<nn::FloorOp>(n.scale(from, 1 / span));
  Value isOdd =
      n.compare(P::ne, n.binary<nn::ModOp>(turns, n.splatLike(turns, 2)),
                n.splatLike(turns, 0));
  Value back = n.binary<nn::SubOp>(n.splatLike(rest, span), rest);
  return clipToLine(n, n.plus(n.select(isOdd, back, rest), low), line);
}

static Value pad(Importer &n, Value place, const Line &line) {
  switch (line.padding) {
  case Padding::Zeros:
    return place;
  case Padding::Border:
    return clipToLine(n, place, line);
  case Padding::Reflection:
    return reflect(n, place, line);
  }
  llvm_unreachable("no such padding");
}

/// Keys' cubic convolution with a = -0.75 at four places, `rest` behind the
/// second of them.
static SmallVector<Value> cubicWeights(Importer &n, Value rest) {
  constexpr double a = -0.75;
  auto polynomial = [&](Value x, ArrayRef<double> factors) {
    Value sum = n.splatLike(x, factors.front());
    for (double factor : factors.drop_front())
      sum = n.plus(n.binary<nn::MulOp>(sum, x), factor);
    return sum;
  };
  auto near = [&](Value x) { return polynomial(x, {a + 2, -a - 3, 0, 1}); };
  auto far = [&](Value x) { return polynomial(x, {a, -5 * a, 8 * a, -4 * a}); };
  Value other = n.binary<nn::SubOp>(n.splatLike(rest, 1), rest);
  return {far(n.plus(rest, 1)), near(rest), near(other), far(n.plus(other, 1))};
}

static SmallVector<Tap> findTaps(Importer &n, Value at, StringRef mode,
                                 const Line &line) {
  Value place = findPlace(n, at, line);
  SmallVector<Tap> taps;
  if (mode == "cubic") { // what is beyond is padded element by element
    Value first = n.unary<nn::FloorOp>(place);
    Value rest = n.binary<nn::SubOp>(place, first);
    for (auto [step, weight] : llvm::enumerate(cubicWeights(n, rest)))
      taps.push_back(
          {pad(n, n.plus(first, double(step) - 1), line), weight, line.size});
    return taps;
  }
  place = pad(n, place, line);
  if (mode == "nearest")
    return {{n.unary<nn::RoundOp>(place), n.splatLike(place, 1), line.size}};
  return linearTaps(n, place, line.size);
}

static std::optional<Padding> readPadding(Importer &n) {
  std::string name = n.stringAttr("padding_mode", "zeros");
  if (name == "zeros")
    return Padding::Zeros;
  if (name == "border")
    return Padding::Border;
  if (name == "reflection")
    return Padding::Reflection;
  n.error() << "expected 'padding_mode' to be zeros, border or reflection, "
               "found '"
            << name << "'";
  return std::nullopt;
}

/// X is [N, C, S…], the grid [N, O…, dimensions of space], the last first.
static LogicalResult importGridSample(Importer &n) {
  Value x = n.operand(0), grid = n.operand(1);
  std::string mode = n.stringAttr("mode", "linear");
  mode = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
  bool alignsCorners = n.intAttr("align_corners", 0);
  std::optional<Padding> padding = readPadding(n);
  if (!padding)
    return failure();
  if (mode != "linear" && mode != "cubic" && mode != "nearest")
    return n.error()
           << "expected 'mode' to be linear, cubic or nearest, found '" << mode
           << "'";
  SmallVector<int64_t> shape(Importer::shape(x)), out(Importer::shape(grid));
  int64_t dims = int64_t(shape.size()) - 2;
  if (dims < 1 || dims > 3 || out.size() != shape.size() ||
      out.back() != dims || out[0] != shape[0] || !Importer::isFloat(x) ||
      !Importer::isFloat(grid) ||
      llvm::is_contained(ArrayRef(shape).drop_front(), 0))
    return n.error() << "expected a picture [N, C, S…] of 1 to 3 dimensions of "
                        "space and a grid [N, O…, dimensions], found "
                     << x.getType() << " and " << grid.getType();
  int64_t batch = shape[0], channels = shape[1],
          places = ShapedType::getNumElements(
              ArrayRef(out).drop_front().drop_back());
  SmallVector<SmallVector<Tap>> taps;
  for (int64_t dim = 0; dim < dims; ++dim) {
    Value at =
        n.reshape(n.slice(grid, dims + 1, dims - 1 - dim, 1), {batch, places});
    taps.push_back(
        findTaps(n, at, mode, Line{shape[2 + dim], alignsCorners, *padding}));
  }
  Value sum = sample(n, tableOf(n, x), n.iota(batch), taps);
  SmallVector<int64_t> result{batch, channels};
  llvm::append_range(result, ArrayRef(out).drop_front().drop_back());
  return n.finish(n.reshape(n.transpose(sum, {0, 2, 1}), result));
}

/// The places of a grid of `size`, moved by each sample's matrix
/// [N, dimensions, dimensions + 1].
static LogicalResult importAffineGrid(Importer &n) {
  Value theta = n.operand(0);
  SmallVector<int64_t> size = n.constantInts(1);
  bool alignsCorners = n.intAttr("align_corners", 0);
  if (n.hasFailed())
    return failure();
  int64_t dims = int64_t(size.size()) - 2;
  if (dims < 2 || dims > 3 || Importer::rank(theta) != 3 ||
      Importer::shape(theta) != ArrayRef<int64_t>({size[0], dims, dims + 1}) ||
      llvm::any_of(size,
                   [](int64_t each) { return each < 1 || each > 1 << 24; }))
    return n.error() << "expected a size [N, C, S…] of 2 or 3 dimensions of "
                        "space and a matrix for each sample, found ["
                     << size << "] and " << theta.getType();
  ArrayRef<int64_t> space = ArrayRef(size).drop_front(2);
  SmallVector<int64_t> one(space);
  one.push_back(1);
  if (!isAddressable(one))
    return n.error() << "expected a size that can be addressed, found [" << size
                     << "]";
  Type element = Importer::element(theta);
  SmallVector<Value> columns;
  for (int64_t dim = dims - 1; dim >= 0; --dim) {
    double count = double(space[dim]);
    Value line = n.cast(n.iota(space[dim]), element);
    double step = alignsCorners ? (count > 1 ? 2 / (count - 1) : 0) : 2 / count,
           start = alignsCorners ? (count > 1 ? -1 : 0) : 1 / count - 1;
    SmallVector<int64_t> along(dims + 1, 1);
    along[dim] = space[dim];
    columns.push_back(
        n.broadcast(n.reshape(n.plus(n.scale(line, step), start), along), one));
  }
  columns.push_back(n.splat(one, element, 1));
  Value points = n.reshape(n.concat(columns, dims),
                           {1, ShapedType::getNumElements(space), dims + 1});
  Value moved = n.matmul(points, theta, /*transposeLhs=*/false,
                         /*transposeRhs=*/true);
  SmallVector<int64_t> result{size[0]};
  llvm::append_range(result, space);
  result.push_back(dims);
  return n.finish(n.reshape(moved, result));
}

ArrayRef<OpRow> accel::import::gridSampleOps() {
  static const OpRow rows[] = {
      {"", "AffineGrid", 20, 2, 2, importAffineGrid},
      {"", "GridSample", 16, 2, 2, importGridSample},
  };
  return rows;
}
