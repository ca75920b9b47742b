// Import of the Fourier transforms, as products with the matrix of their
// definition, and of the windows that go with them.

#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

namespace {
/// Real and imaginary parts; none of the latter where it is 0.
struct Complex {
  Value real, imaginary;
};

/// One transform along the last dimension: of `length` numbers, `bins` of the
/// result.
struct Transform {
  int64_t length, bins;
  bool isInverse;
};
} // namespace

/// Elements of one matrix, or of all frames: a hundred megabytes.
static constexpr int64_t kMostElements = 10'000'000;
static constexpr int64_t kLongest = 1 << 13;

/// [length, bins] of cos and sin of 2 π n k / length.
static std::optional<Complex> makeMatrix(Importer &n, const Transform &form,
                                         Type element) {
  int64_t count = form.length * form.bins;
  if (count > std::min(kMostElements, n.graph.room)) {
    n.error() << "expected the matrix of a transform to have at most "
              << kMostElements << " elements, and constants of the whole model "
              << "to take at most " << GraphImporter::kMostOperations
              << " operations, found " << form.length << " by " << form.bins;
    return std::nullopt;
  }
  n.graph.room -= count;
  auto type = RankedTensorType::get({form.length, form.bins},
                                    Float64Type::get(n.loc.getContext()));
  std::vector<double> cosines(count), sines(count);
  for (int64_t row = 0; row < form.length; ++row)
    for (int64_t bin = 0; bin < form.bins; ++bin) {
      double angle =
          2 * M_PI * double(row * bin % form.length) / double(form.length);
      cosines[row * form.bins + bin] = std::cos(angle);
      sines[row * form.bins + bin] = std::sin(angle);
    }
  auto make = [&](const std::vector<double> &values) {
    return n.cast(n.constant(DenseElementsAttr::get(type, ArrayRef(values))),
                  element);
  };
  return Complex{make(cosines), make(sines)};
}

/// Σ x e^(∓ 2 π i n k / length), divided by the length of an inverse one.
static Complex transform(Importer &n, Complex x, const Transform &form) {
  std::optional<Complex> matrix =
      makeMatrix(n, form, Importer::element(x.real));
  if (!matrix)
    return {};
  Value real = n.matmul(x.real, matrix->real),
        imaginary = n.matmul(x.real, matrix->imaginary);
  if (!form.isInverse)
    imaginary = n.unary<nn::NegOp>(imaginary);
  if (x.imaginary) {
    Value across = n.matmul(x.imaginary, matrix->imaginary),
          along = n.matmul(x.imaginary, matrix->real);
    real = form.isInverse ? n.binary<nn::SubOp>(real, across)
                          : n.binary<nn::AddOp>(real, across);
    imaginary = n.binary<nn::AddOp>(imaginary, along);
  }
  if (!form.isInverse)
    return {real, imaginary};
  double share = 1 / double(form.length);
  return {n.scale(real, share), n.scale(imaginary, share)};
}

/// Both parts of a tensor whose last dimension has them, without it.
static Complex splitParts(Importer &n, Value x) {
  SmallVector<int64_t> shape(Importer::shape(x));
  int64_t parts = shape.empty() ? 0 : shape.pop_back_val();
  if ((parts != 1 && parts != 2) || !Importer::isFloat(x)) {
    n.error() << "expected floats whose last dimension has one or two parts of "
                 "a number, found "
              << x.getType();
    return {};
  }
  auto part = [&](int64_t which) {
    return n.reshape(n.slice(x, int64_t(shape.size()), which, 1), shape);
  };
  return {part(0), parts == 2 ? part(1) : Value()};
}

static Value joinParts(Importer &n, Complex x) {
  if (n.hasFailed())
    return nullptr;
  SmallVector<int64_t> shape(Importer::shape(x.real));
  shape.push_back(1);
  return n.concat({n.reshape(x.real, shape), n.reshape(x.imaginary, shape)},
                  int64_t(shape.size()) - 1);
}

/// Cut or filled up with zeros to `length` along the last dimension.
static Value fit(Importer &n, Value x, int64_t length) {
  if (!x || n.hasFailed() || Importer::shape(x).back() == length)
    return x;
  int64_t last = Importer::rank(x) - 1, size = Importer::shape(x).back();
  if (size > length)
    return n.slice(x, last, 0, length);
  SmallVector<int64_t> low(last + 1, 0), high(last + 1, 0);
  high.back() = length - size;
  return n.create<nn::PadOp>({x, n.splat({}, Importer::element(x), 0)},
                             {n.named("low", low), n.named("high", high)});
}

/// The other half of a spectrum of real numbers: conjugates in reverse.
static Complex mirror(Importer &n, Complex half, int64_t length) {
  int64_t last = Importer::rank(half.real) - 1, rest = length - length / 2 - 1;
  if (rest <= 0 || n.hasFailed())
    return half;
  auto extend = [&](Value x, bool isNegated) {
    SmallVector<int64_t> starts(last + 1, 0), steps(last + 1, 1);
    SmallVector<int64_t> sizes(Importer::shape(x));
    starts[last] = rest;
    steps[last] = -1;
    sizes[last] = rest;
    Value back = n.create<nn::SliceOp>(x, {n.named("starts", starts),
                                           n.named("sizes", sizes),
                                           n.named("steps", steps)});
    return n.concat({x, isNegated ? n.unary<nn::NegOp>(back) : back}, last);
  };
  return {extend(half.real, false), extend(half.imaginary, true)};
}

static bool checkLength(Importer &n, int64_t length) {
  if (!n.hasFailed() && (length < 1 || length > kLongest))
    n.error() << "expected a transform of 1 to " << kLongest
              << " numbers, found " << length;
  return !n.hasFailed();
}

static LogicalResult importDft(Importer &n, int64_t axis) {
  bool isInverse = n.intAttr("inverse", 0), isHalf = n.intAttr("onesided", 0);
  Value input = n.operand(0);
  int64_t rank = Importer::rank(input);
  axis = n.normalizeAxis(axis, rank);
  Complex x = splitParts(n, input);
  if (n.hasFailed())
    return failure();
  if (axis == rank - 1)
    return n.error() << "expected an axis other than the last, whose elements "
                        "are parts of a number, found "
                     << axis;
  if (isHalf && (isInverse ? !x.imaginary : bool(x.imaginary)))
    return n.error() << "expected real numbers of which half of the spectrum "
                        "is taken, and complex ones of which it is half, found "
                     << input.getType();
  SmallVector<int64_t> last = llvm::to_vector(llvm::seq<int64_t>(rank - 1));
  std::swap(last[axis], last.back()); // its own inverse
  int64_t size = Importer::shape(input)[axis];
  int64_t length = isHalf && isInverse ? 2 * (size - 1) : size;
  if (n.operand(1))
    length = n.constantInt(1);
  if (!checkLength(n, length))
    return failure();
  auto prepare = [&](Value part) {
    bool isMirrored = isHalf && isInverse;
    return part ? fit(n, n.transpose(part, last),
                      isMirrored ? length / 2 + 1 : length)
                : Value();
  };
  x = {prepare(x.real), prepare(x.imaginary)};
  if (isHalf && isInverse)
    x = mirror(n, x, length);
  if (n.hasFailed())
    return failure();
  Complex result = transform(
      n, x,
      {length, isHalf && !isInverse ? length / 2 + 1 : length, isInverse});
  if (n.hasFailed())
    return failure();
  result = {n.transpose(result.real, last),
            n.transpose(result.imaginary, last)};
  if (isHalf && isInverse) {
    SmallVector<int64_t> shape(Importer::shape(result.real));
    shape.push_back(1);
    return n.finish(n.reshape(result.real, shape));
  }
  return n.finish(joinParts(n, result));
}

/// Before opset 20 the axis is an attribute.
static LogicalResult importDftByAttribute(Importer &n) {
  return importDft(n, n.intAttr("axis", 1));
}
static LogicalResult importDftByOperand(Importer &n) {
  return importDft(n, n.operand(2) ? n.constantInt(2) : -2);
}

/// A transform of each frame of a signal [B, S, 1 or 2], times a window.
static LogicalResult importStft(Importer &n) {
  Complex x = splitParts(n, n.operand(0));
  int64_t step = n.constantInt(1);
  Value window = n.operand(2);
  if (n.hasFailed())
    return failure();
  if (Importer::rank(x.real) != 2 || (window && Importer::rank(window) != 1))
    return n.error() << "expected a signal [B, S, parts] and a window of rank "
                        "1, found "
                     << n.operand(0).getType();
  int64_t size = Importer::shape(x.real)[1],
          length = n.operand(3) ? n.constantInt(3)
                   : window     ? Importer::shape(window)[0]
                                : size;
  bool isHalf = n.intAttr("onesided", 1) && !x.imaginary;
  if (!checkLength(n, length))
    return failure();
  if (step < 1 || length > size ||
      (window && Importer::shape(window)[0] != length))
    return n.error() << "expected a step of 1 or more, and a window of frames "
                        "no longer than the signal, found "
                     << step << " and frames of " << length;
  int64_t frames = (size - length) / step + 1;
  if (frames * length > std::min(kMostElements, n.graph.room))
    return n.error() << "expected frames of at most " << kMostElements
                     << " numbers, found " << frames << " of " << length;
  n.graph.room -= frames * length;
  SmallVector<int64_t> places;
  for (int64_t frame = 0; frame < frames; ++frame)
    for (int64_t at = 0; at < length; ++at)
      places.push_back(frame * step + at);
  Value index = n.ints(places, {frames, length});
  auto cut = [&](Value part) {
    if (!part)
      return part;
    Value read =
        n.create<nn::GatherOp>({part, index}, n.named("dim", int64_t(1)));
    return window ? n.binary<nn::MulOp>(read, window) : read;
  };
  return n.finish(joinParts(
      n, transform(n, {cut(x.real), cut(x.imaginary)},
                   {length, isHalf ? length / 2 + 1 : length, false})));
}

/// Σ factors[i] cos(2 π i n / N), N being one less of a symmetric window.
static LogicalResult importWindow(Importer &n, ArrayRef<double> factors) {
  int64_t size = n.constantInt(0);
  bool isPeriodic = n.intAttr("periodic", 1);
  Type element =
      elementType(n.intAttr("output_datatype", onnx::TensorProto::FLOAT),
                  n.loc.getContext());
  if (n.hasFailed())
    return failure();
  if (!isa_and_nonnull<FloatType>(element) || size < 1 || size > 1 << 20)
    return n.error() << "expected a window of floats of 1 to " << (1 << 20)
                     << " elements, found " << size;
  std::vector<double> values(size);
  double span = std::max<double>(1, double(isPeriodic ? size : size - 1));
  for (auto [at, value] : llvm::enumerate(values))
    for (auto [order, factor] : llvm::enumerate(factors))
      value += factor * std::cos(2 * M_PI * double(order * at) / span);
  auto type = RankedTensorType::get(size, n.graph.builder.getF64Type());
  return n.finish(
      n.cast(n.constant(DenseElementsAttr::get(type, ArrayRef(values))),
             computeType(element, n.graph.options.f64)));
}
static LogicalResult importHann(Importer &n) {
  return importWindow(n, {0.5, -0.5});
}
static LogicalResult importHamming(Importer &n) {
  return importWindow(n, {25.0 / 46, -21.0 / 46});
}
static LogicalResult importBlackman(Importer &n) {
  return importWindow(n, {0.42, -0.5, 0.08});
}

ArrayRef<OpRow> accel::import::fourierOps() {
  static const OpRow rows[] = {
      {"", "BlackmanWindow", 17, 1, 1, importBlackman},
      {"", "DFT", 17, 1, 2, importDftByAttribute},
      {"", "DFT", 20, 1, 3, importDftByOperand},
      {"", "HammingWindow", 17, 1, 1, importHamming},
      {"", "HannWindow", 17, 1, 1, importHann},
      {"", "STFT", 17, 2, 4, importStft},
  };
  return rows;
}
