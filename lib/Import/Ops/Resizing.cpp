// Import of Resize and Upsample. Each axis is resized by itself: a position of
// the result is a weighted sum of positions of the operand, all of which are
// known when the model is compiled (Resampling.h).

#include "lib/Import/OpTable.h"
#include "lib/Import/Resampling.h"
#include "lib/Import/Tensors.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// The operand's elements at one position for each of the result's.
static Value gatherAt(Importer &n, Value x, const ResampledAxis &axis,
                      ArrayRef<int64_t> positions) {
  Value places = n.ints(positions, int64_t(positions.size()));
  return n.create<nn::GatherOp>({x, places}, n.named("dim", axis.dim));
}

static Value floats(Importer &n, ArrayRef<int64_t> shape, Type element,
                    ArrayRef<double> numbers) {
  SmallVector<APFloat> values;
  for (double number : numbers) {
    bool losesInfo = false;
    values.emplace_back(number).convert(
        cast<FloatType>(element).getFloatSemantics(),
        APFloat::rmNearestTiesToEven, &losesInfo);
  }
  return n.constant(
      DenseElementsAttr::get(RankedTensorType::get(shape, element), values));
}

/// A number for each position of an axis, as a tensor that broadcasts.
static Value alongAxis(Importer &n, int64_t rank, Type element,
                       const ResampledAxis &axis, ArrayRef<double> numbers) {
  SmallVector<int64_t> shape(rank, 1);
  shape[axis.dim] = axis.to;
  return floats(n, shape, element, numbers);
}

/// A term for each tap. Where a sum has fewer, the weight is 0.
static Value sumOfTerms(Importer &n, Value x, const Resampling &method,
                        const ResampledAxis &axis, ArrayRef<Taps> all,
                        size_t most) {
  Value sum;
  for (size_t tap = 0; tap < most; ++tap) {
    SmallVector<int64_t> positions;
    SmallVector<double> weights;
    for (const Taps &taps : all) {
      bool isThere = tap < taps.positions.size();
      positions.push_back(taps.positions[isThere ? tap : 0]);
      weights.push_back(isThere ? taps.weights[tap] : 0);
    }
    Value term = gatherAt(n, x, axis, positions);
    if (!term)
      return nullptr;
    if (method.mode != "nearest")
      term = n.binary<nn::MulOp>(
          term,
          alongAxis(n, Importer::rank(x), Importer::element(x), axis, weights));
    sum = sum ? n.binary<nn::AddOp>(sum, term) : term;
  }
  return sum;
}

/// The same as a product with a matrix [from, to].
static Value productWithWeights(Importer &n, Value x, const ResampledAxis &axis,
                                ArrayRef<Taps> all) {
  SmallVector<double> weights(axis.from * axis.to, 0);
  for (auto [position, taps] : llvm::enumerate(all))
    for (auto [from, weight] : llvm::zip_equal(taps.positions, taps.weights))
      weights[from * axis.to + position] += weight;
  Value matrix = floats(n, {axis.from, axis.to}, Importer::element(x), weights);
  SmallVector<int64_t> last =
      llvm::to_vector(llvm::seq<int64_t>(Importer::rank(x)));
  std::swap(last[axis.dim], last.back()); // its own inverse
  return n.transpose(n.matmul(n.transpose(x, last), matrix), last);
}

/// As many terms are written one by one.
static constexpr size_t kMostTerms = 8;

static Value resizeAxis(Importer &n, Value x, const Resampling &method,
                        const ResampledAxis &axis) {
  SmallVector<Taps> all;
  SmallVector<double> isCropped;
  size_t most = 1;
  for (int64_t position = 0; position < axis.to; ++position) {
    double place = locate(method, axis, position);
    // NaN is nowhere in the operand.
    bool isInside = place >= 0 && place <= double(axis.from - 1);
    isCropped.push_back(method.transformation == "tf_crop_and_resize" &&
                        !isInside);
    all.push_back(findTaps(method, axis, isCropped.back() ? 0 : place));
    most = std::max(most, all.back().positions.size());
  }
  Value sum = most > kMostTerms ? productWithWeights(n, x, axis, all)
                                : sumOfTerms(n, x, method, axis, all, most);
  if (!sum || llvm::none_of(isCropped, [](double is) { return is != 0; }))
    return sum;
  Value cropped = alongAxis(n, Importer::rank(x), n.graph.builder.getF32Type(),
                            axis, isCropped);
  Value isOut =
      n.compare(nn::ComparePredicate::ne, cropped, n.splatLike(cropped, 0));
  return n.select(isOut, n.splatLike(sum, method.outside), sum);
}

/// As many positions of one axis, and products of two sizes, as no picture has.
static constexpr int64_t kMostPositions = 1 << 16, kMostWeights = 1 << 24;

static LogicalResult resize(Importer &n, const Resampling &method,
                            ArrayRef<ResampledAxis> axes) {
  Value x = n.operand(0);
  if (method.mode != "nearest" && method.mode != "linear" &&
      method.mode != "cubic")
    return n.error() << "expected 'mode' to be 'nearest', 'linear' or 'cubic', "
                        "found '"
                     << method.mode << "'";
  if (method.mode != "nearest" && !Importer::isFloat(x))
    return n.error() << "expected floats with 'mode' '" << method.mode
                     << "', found " << x.getType();
  for (const ResampledAxis &axis : axes) {
    if (axis.to < 1 || axis.to > kMostPositions || axis.from < 1)
      return n.error() << "expected from 1 to " << kMostPositions
                       << " positions of dimension " << axis.dim << ", found "
                       << axis.to << " of " << axis.from;
    if (method.isAntialiased && axis.from > kMostWeights / axis.to)
      return n.error() << "expected dimension " << axis.dim
                       << " to be resized by at most " << kMostWeights
                       << " weights, found " << axis.to << " times "
                       << axis.from;
    bool isWhole = axis.begin == 0 && axis.end == 1;
    if (axis.to != axis.from || axis.scale != 1 || !isWhole)
      x = resizeAxis(n, x, method, axis);
    if (!x)
      return failure();
  }
  return n.finish(x);
}

/// The operand's floats, which must be known now; none where there are none.
static std::optional<SmallVector<double>> knownFloats(Importer &n,
                                                      unsigned index) {
  SmallVector<double> numbers;
  if (!n.operand(index))
    return numbers;
  DenseElementsAttr known = Importer::constantOf(n.operand(index));
  if (!known || n.graph.choices.isSize(n.operand(index))) {
    n.refuseComputed(index);
    return std::nullopt;
  }
  if (!isa<FloatType>(known.getElementType())) {
    n.error() << "expected floats as operand #" << index << ", found "
              << known.getType();
    return std::nullopt;
  }
  for (const APFloat &number : known.getValues<APFloat>()) {
    APFloat wide = number;
    bool losesInfo = false;
    wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
    numbers.push_back(wide.convertToDouble());
  }
  return numbers;
}

/// Axes resized by factors.
static FailureOr<SmallVector<ResampledAxis>> scaleAxes(Importer &n,
                                                       ArrayRef<int64_t> dims,
                                                       ArrayRef<double> scales,
                                                       ArrayRef<double> parts) {
  SmallVector<ResampledAxis> axes;
  for (auto [dim, scale] : llvm::zip_equal(dims, scales)) {
    int64_t from = Importer::shape(n.operand(0))[dim];
    size_t at = axes.size();
    ResampledAxis axis{dim, from, 0, scale, scale, 1};
    if (!parts.empty()) {
      axis.begin = parts[at];
      axis.end = parts[dims.size() + at];
    }
    double size = std::floor(double(from) * (axis.end - axis.begin) * scale);
    if (!(scale > 0) || !(size >= 0 && size <= double(kMostPositions)))
      return n.error() << "expected a factor from 1 position to "
                       << kMostPositions << " of dimension " << dim
                       << ", found " << scale;
    axis.to = int64_t(size);
    axes.push_back(axis);
  }
  return axes;
}

/// Axes resized to sizes; by one factor for all with a policy other than
/// `stretch`.
static FailureOr<SmallVector<ResampledAxis>>
sizeAxes(Importer &n, ArrayRef<int64_t> dims, ArrayRef<int64_t> sizes,
         ArrayRef<double> parts, StringRef policy) {
  ArrayRef<int64_t> shape = Importer::shape(n.operand(0));
  SmallVector<ResampledAxis> axes;
  double factor = 0;
  for (auto [dim, size] : llvm::zip_equal(dims, sizes)) {
    size_t at = axes.size();
    if (size < 1 || size > kMostPositions || shape[dim] < 1)
      return n.error() << "expected from 1 to " << kMostPositions
                       << " positions of dimension " << dim << ", found "
                       << size << " of " << shape[dim];
    double scale = double(size) / double(shape[dim]);
    factor = at == 0                   ? scale
             : policy == "not_smaller" ? std::max(factor, scale)
                                       : std::min(factor, scale);
    ResampledAxis axis{dim,   shape[dim],   size,
                       scale, double(size), double(shape[dim])};
    if (!parts.empty()) {
      axis.begin = parts[at];
      axis.end = parts[dims.size() + at];
    }
    axes.push_back(axis);
  }
  if (policy == "stretch")
    return axes;
  if (policy != "not_larger" && policy != "not_smaller")
    return n.error() << "expected 'keep_aspect_ratio_policy' to be 'stretch', "
                        "'not_larger' or 'not_smaller', found '"
                     << policy << "'";
  for (ResampledAxis &axis : axes)
    axis = {axis.dim,   axis.from, int64_t(factor * double(axis.from) + 0.5),
            factor,     factor,    1,
            axis.begin, axis.end};
  return axes;
}

static LogicalResult importResize(Importer &n) {
  Resampling method;
  method.mode = n.stringAttr("mode", "nearest");
  method.transformation =
      n.stringAttr("coordinate_transformation_mode", "half_pixel");
  method.nearest = n.stringAttr("nearest_mode", "round_prefer_floor");
  method.cubic = n.floatAttr("cubic_coeff_a", -0.75);
  method.outside = n.floatAttr("extrapolation_value", 0);
  method.isOutsideExcluded = n.intAttr("exclude_outside", 0);
  method.isAntialiased = n.intAttr("antialias", 0);
  static constexpr StringLiteral kTransformations[] = {
      "half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
      "align_corners", "asymmetric",           "tf_crop_and_resize"};
  if (!llvm::is_contained(kTransformations, method.transformation))
    return n.error() << "'coordinate_transformation_mode' '"
                     << method.transformation << "' is not supported";
  static constexpr StringLiteral kNearest[] = {
      "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  if (!llvm::is_contained(kNearest, method.nearest))
    return n.error() << "'nearest_mode' '" << method.nearest
                     << "' is not supported";
  // Of sizes alone.
  std::string policy = n.stringAttr("keep_aspect_ratio_policy", "stretch");
  int64_t rank = Importer::rank(n.operand(0));
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(rank));
  if (auto said = n.intsAttr("axes")) {
    dims.clear();
    for (int64_t axis : *said)
      dims.push_back(n.normalizeAxis(axis, rank));
  }
  SmallVector<double> parts;
  if (method.transformation == "tf_crop_and_resize") {
    auto known = knownFloats(n, 1);
    if (!known)
      return failure();
    parts = *known;
  }
  auto scales = knownFloats(n, 2);
  if (!scales)
    return failure();
  SmallVector<int64_t> sizes;
  if (n.operand(3))
    sizes = n.constantInts(3);
  if (n.hasFailed())
    return failure();
  size_t count = std::max(scales->size(), sizes.size());
  if (scales->empty() == sizes.empty() || count != dims.size() ||
      (!parts.empty() && parts.size() != 2 * dims.size()))
    return n.error() << "expected either scales or sizes of " << dims.size()
                     << " dimensions, found " << scales->size() << " and "
                     << sizes.size();
  FailureOr<SmallVector<ResampledAxis>> axes =
      sizes.empty() ? scaleAxes(n, dims, *scales, parts)
                    : sizeAxes(n, dims, sizes, parts, policy);
  return failed(axes) ? failure() : resize(n, method, *axes);
}

/// Resize of opset 10 and Upsample: positions divided by the scale, rounded
/// down.
static LogicalResult resizeFromCorner(Importer &n, ArrayRef<double> scales) {
  Resampling method;
  method.mode = n.stringAttr("mode", "nearest");
  method.transformation = "asymmetric";
  method.nearest = "floor";
  int64_t rank = Importer::rank(n.operand(0));
  if (scales.size() != size_t(rank))
    return n.error() << "expected scales of " << rank << " dimensions, found "
                     << scales.size();
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(rank));
  FailureOr<SmallVector<ResampledAxis>> axes = scaleAxes(n, dims, scales, {});
  return failed(axes) ? failure() : resize(n, method, *axes);
}
static LogicalResult importCornerResize(Importer &n) {
  auto scales = knownFloats(n, 1);
  return scales ? resizeFromCorner(n, *scales) : failure();
}
static LogicalResult importUpsampleByAttribute(Importer &n) {
  const auto *list = n.attribute("scales", onnx::AttributeProto::FLOATS);
  if (!list)
    return n.error() << "expected an attribute 'scales'";
  SmallVector<double> scales(list->floats().begin(), list->floats().end());
  return resizeFromCorner(n, scales);
}

ArrayRef<OpRow> accel::import::resizingOps() {
  static const OpRow rows[] = {
      {"", "Resize", 10, 2, 2, importCornerResize},
      {"", "Resize", 11, 1, 4, importResize},
      {"", "Upsample", 7, 1, 1, importUpsampleByAttribute},
      {"", "Upsample", 9, 2, 2, importCornerResize},
  };
  return rows;
}
