// Import of convolutions.

#include "lib/Import/Convolve.h"
#include "lib/Import/OpTable.h"
#include "lib/Import/Windows.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// The value with dimension `dim` of groups · size as two: those of `groups`.
static Value splitGroups(Importer &n, Value value, int64_t dim,
                         int64_t groups) {
  if (n.hasFailed() || groups == 1)
    return value;
  SmallVector<int64_t> shape(Importer::shape(value));
  shape[dim] /= groups;
  shape.insert(shape.begin() + dim, groups);
  return n.reshape(value, shape);
}

/// The transpose: of groups and their channels channels again.
static Value joinGroups(Importer &n, Value value, int64_t groups) {
  if (n.hasFailed() || groups == 1)
    return value;
  SmallVector<int64_t> shape(Importer::shape(value));
  shape[1] *= shape[2];
  shape.erase(shape.begin() + 2);
  return n.reshape(value, shape);
}

/// Whether all elements are known to be 0.
static bool isZero(Value value) {
  DenseElementsAttr known = Importer::constantOf(value);
  return known && known.isSplat() && isa<FloatType>(known.getElementType()) &&
         known.getSplatValue<APFloat>().isZero();
}

/// The sum with one number for each channel. Zeros add nothing: PyTorch 2.13
/// writes some for a 3-D convolution without bias, in a shape of another.
static Value addBias(Importer &n, Value value, Value bias) {
  if (!bias || n.hasFailed() || isZero(bias))
    return value;
  SmallVector<int64_t> shape(Importer::rank(value) - 1, 1);
  shape[0] = Importer::shape(value)[1];
  if (Importer::shape(bias) != ArrayRef<int64_t>(shape[0])) {
    n.error() << "expected a bias of " << shape[0] << " channels, found "
              << bias.getType();
    return nullptr;
  }
  return n.binary<nn::AddOp>(value, n.reshape(bias, shape));
}

/// Whether input and weight have as many dimensions, of which the first two are
/// no space, and `group` divides `channels`; an error otherwise.
static bool checkOperands(Importer &n, Value x, Value weight, int64_t groups) {
  if (Importer::rank(x) < 3 || Importer::rank(weight) != Importer::rank(x)) {
    n.error() << "expected an input [N, C, S…] and a weight of as many "
                 "dimensions, found "
              << x.getType() << " and " << weight.getType();
    return false;
  }
  int64_t ofInput = Importer::shape(x)[1],
          ofWeight = Importer::shape(weight)[0];
  if (groups >= 1 && ofInput % groups == 0 && ofWeight % groups == 0)
    return true;
  n.error() << "expected a number of groups that divides the channels, found "
            << groups << " of " << x.getType() << " and " << weight.getType();
  return false;
}

Value import::convolve(Importer &n, Value x, Value weight) {
  int64_t groups = n.intAttr("group", 1);
  if (n.hasFailed() || !checkOperands(n, x, weight, groups))
    return nullptr;
  ArrayRef<int64_t> space = Importer::shape(x).drop_front(2);
  if (Importer::shape(x)[1] != groups * Importer::shape(weight)[1]) {
    n.error() << "expected a weight of " << Importer::shape(x)[1] / groups
              << " channels in each group, found " << weight.getType();
    return nullptr;
  }
  std::optional<Windows> windows =
      readWindows(n, space, Importer::shape(weight).drop_front(2));
  if (!windows)
    return nullptr;
  std::optional<SmallVector<int64_t>> sizes = countWindows(n, space, *windows);
  if (!sizes)
    return nullptr;
  Value result = n.create<nn::ConvOp>(
      {splitGroups(n, x, 1, groups), splitGroups(n, weight, 0, groups)},
      {n.named("sizes", *sizes), n.named("strides", windows->strides),
       n.named("dilations", windows->dilations), n.named("low", windows->low)});
  return joinGroups(n, result, groups);
}

static LogicalResult importConv(Importer &n) {
  Value result = convolve(n, n.operand(0), n.operand(1));
  return n.finish(addBias(n, result, n.operand(2)));
}

/// The sizes of a transposed convolution's result, and its low paddings: as
/// ONNX has them, from `output_shape` or from the pads.
static std::optional<SmallVector<int64_t>>
sizeTransposed(Importer &n, ArrayRef<int64_t> space, Windows &windows) {
  size_t dims = space.size();
  SmallVector<int64_t> extra(dims, 0), sizes;
  if (auto given = n.intsAttr("output_padding"))
    extra = *given;
  std::optional<SmallVector<int64_t>> wanted = n.intsAttr("output_shape");
  // Some write the samples and channels, too.
  if (wanted && wanted->size() == dims + 2)
    wanted->erase(wanted->begin(), wanted->begin() + 2);
  if (n.hasFailed())
    return std::nullopt;
  if (extra.size() != dims || (wanted && wanted->size() != dims) ||
      llvm::any_of(extra, [](int64_t count) { return count < 0; })) {
    n.error() << "expected 'output_padding' and 'output_shape' of " << dims
              << " dimensions of space";
    return std::nullopt;
  }
  std::string mode = n.stringAttr("auto_pad", "NOTSET");
  bool isSame = StringRef(mode).starts_with("SAME");
  for (size_t dim = 0; dim < dims; ++dim) {
    int64_t stride = windows.strides[dim];
    int64_t whole =
        stride * (space[dim] - 1) + extra[dim] + windows.extent(dim);
    if (!wanted && !isSame) {
      sizes.push_back(whole - windows.low[dim] - windows.high[dim]);
    } else {
      sizes.push_back(wanted ? (*wanted)[dim] : space[dim] * stride);
      int64_t total = std::max<int64_t>(0, whole - sizes[dim]);
      windows.low[dim] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    }
    if (sizes[dim] < 1) {
      n.error() << "expected a result of at least one element, found "
                << sizes[dim] << " in dimension #" << dim << " of space";
      return std::nullopt;
    }
  }
  return sizes;
}

/// X is [N, C, S…], W [C, M / group, K…]: the gradient of the input of a
/// convolution from M to C channels.
static LogicalResult importConvTranspose(Importer &n) {
  Value x = n.operand(0), weight = n.operand(1);
  int64_t groups = n.intAttr("group", 1);
  if (!checkOperands(n, x, weight, groups))
    return failure();
  if (Importer::shape(x)[1] != Importer::shape(weight)[0])
    return n.error() << "expected a weight of " << Importer::shape(x)[1]
                     << " channels, found " << weight.getType();
  ArrayRef<int64_t> space = Importer::shape(x).drop_front(2);
  std::optional<Windows> windows =
      readWindows(n, space, Importer::shape(weight).drop_front(2));
  if (!windows)
    return failure();
  std::optional<SmallVector<int64_t>> sizes =
      sizeTransposed(n, space, *windows);
  if (!sizes)
    return failure();
  Value result = n.create<nn::ConvInputGradOp>(
      {splitGroups(n, x, 1, groups), splitGroups(n, weight, 0, groups)},
      {n.named("sizes", *sizes), n.named("strides", windows->strides),
       n.named("dilations", windows->dilations), n.named("low", windows->low)});
  return n.finish(addBias(n, joinGroups(n, result, groups), n.operand(2)));
}

ArrayRef<OpRow> accel::import::convolutionOps() {
  static const OpRow rows[] = {
      {"", "Conv", 1, 2, 3, importConv},
      {"", "ConvTranspose", 1, 2, 3, importConvTranspose},
  };
  return rows;
}
