// Import of the operators of quantized models: integers with scales. Integers
// are multiplied as f64, in which their products and sums are exact.

#include "dialects/NN/Casts.h"
#include "lib/Import/Convolve.h"
#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"

#include <limits>

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// A scale or zero point as a tensor that broadcasts to `shape`: one number,
/// one for each place along `axis`, or one for each block of it. An error for
/// any other.
static Value spread(Importer &n, Value numbers, ArrayRef<int64_t> shape,
                    int64_t axis, int64_t block) {
  if (!numbers)
    return nullptr;
  SmallVector<int64_t> own(Importer::shape(numbers));
  if (ShapedType::getNumElements(own) == 1 && own.size() <= 1)
    return n.reshape(numbers, {});
  axis = n.normalizeAxis(axis, shape.size());
  if (n.hasFailed())
    return nullptr;
  if (own.size() == 1 && own[0] == shape[axis] && block == 0) {
    SmallVector<int64_t> along(shape.size(), 1);
    along[axis] = own[0];
    return n.reshape(numbers, along);
  }
  SmallVector<int64_t> expected(shape);
  if (block > 0)
    expected[axis] = llvm::divideCeil(shape[axis], block);
  if (block <= 0 || own != expected) {
    n.error() << "expected scales and zero points of one number, of one for "
                 "each of "
              << shape[axis]
              << " places along the axis, or, with a 'block_size', for each "
                 "block of it, found "
              << numbers.getType();
    return nullptr;
  }
  own.insert(own.begin() + axis + 1, 1);
  Value repeated = n.reshape(numbers, own);
  own[axis + 1] = block;
  repeated = n.broadcast(repeated, own);
  own[axis] *= block;
  own.erase(own.begin() + axis + 1);
  return n.slice(n.reshape(repeated, own), axis, 0, shape[axis]);
}

/// f32, or the wider type of a value.
static Type widened(Importer &n, Value value) {
  Type f32 = n.graph.builder.getF32Type(), element = Importer::element(value);
  return element && element.isF64() ? element : f32;
}

/// What is beyond the numbers of an integer type is the nearest of them.
static Value saturate(Importer &n, Value x, Type type) {
  unsigned bits = type.getIntOrFloatBitWidth();
  bool isUnsigned = type.isUnsignedInteger();
  double low = isUnsigned ? 0 : double(llvm::minIntN(bits)),
         high = isUnsigned ? double(llvm::maxUIntN(bits))
                           : double(llvm::maxIntN(bits));
  x = n.binary<nn::MaxOp>(x, n.splatLike(x, low));
  return n.cast(n.binary<nn::MinOp>(x, n.splatLike(x, high)), type);
}

/// round(x / scale) + zero as `type`: integers saturate, and so do floats of 8
/// bits unless the node says otherwise. Divided in `divided`.
static Value quantize(Importer &n, Value x, Value scale, Value zero, Type type,
                      Type divided, bool saturates) {
  if (n.hasFailed())
    return nullptr;
  Value quotient =
      n.binary<nn::DivOp>(n.cast(x, divided), n.cast(scale, divided));
  quotient = n.cast(quotient, widened(n, quotient));
  if (isa<IntegerType>(type))
    quotient = n.unary<nn::RoundOp>(quotient);
  if (zero)
    quotient = n.binary<nn::AddOp>(quotient,
                                   n.cast(zero, Importer::element(quotient)));
  if (n.hasFailed())
    return nullptr;
  if (isa<IntegerType>(type))
    return saturate(n, quotient, type);
  SmallVector<NamedAttribute> attributes;
  if (saturates)
    attributes.push_back(n.unit("saturate"));
  return n.create<nn::CastOp>(
      quotient, attributes,
      RankedTensorType::get(Importer::shape(quotient), type));
}

/// Where a trained value is rounded, PyTorch has no gradient, and a rounding
/// that passes it on (straight-through) is another function.
static bool mayRound(Importer &n) {
  if (!n.graph.options.forTraining || Importer::constantOf(n.operand(0)))
    return true;
  n.error() << "rounds what may be trained, which passes no gradient: expected "
               "a model that is not quantized where it is trained";
  return false;
}

/// An attribute that names an element type; `fallback` where it does not.
static Type typeAttr(Importer &n, StringRef name, Type fallback) {
  int64_t number = n.intAttr(name, 0);
  if (number == 0)
    return fallback;
  Type type = elementType(number, n.loc.getContext());
  if (!type)
    n.error() << "element type #" << number << " of '" << name
              << "' is not supported";
  return type;
}

static LogicalResult importQuantizeLinear(Importer &n) {
  if (!mayRound(n))
    return failure();
  Value x = n.operand(0), zero = n.operand(2);
  int64_t axis = n.intAttr("axis", 1), block = n.intAttr("block_size", 0);
  bool saturates = n.intAttr("saturate", 1) != 0;
  Type byte = n.graph.builder.getIntegerType(8, /*isSigned=*/false);
  Type type =
      typeAttr(n, "output_dtype", zero ? Importer::element(zero) : byte);
  if (n.hasFailed())
    return failure();
  if (zero && Importer::element(zero) != type)
    return n.error() << "expected a zero point of " << type << ", found "
                     << zero.getType();
  Value scale = spread(n, n.operand(1), Importer::shape(x), axis, block);
  zero = spread(n, zero, Importer::shape(x), axis, block);
  if (n.hasFailed())
    return failure();
  Type divided = typeAttr(n, "precision", Importer::element(scale));
  if (n.hasFailed())
    return failure();
  divided = isa<IntegerType>(divided) || nn::isCode(divided)
                ? widened(n, x)
                : computeType(divided, n.graph.options.f64);
  return n.finish(quantize(n, x, scale, zero, type, divided, saturates));
}

static LogicalResult importDequantizeLinear(Importer &n) {
  Value x = n.operand(0);
  int64_t axis = n.intAttr("axis", 1), block = n.intAttr("block_size", 0);
  Value scale = spread(n, n.operand(1), Importer::shape(x), axis, block);
  Value zero = spread(n, n.operand(2), Importer::shape(x), axis, block);
  if (n.hasFailed())
    return failure();
  Type result = typeAttr(n, "output_dtype", Importer::element(scale));
  if (n.hasFailed())
    return failure();
  result = nn::isCode(result) ? n.graph.builder.getF32Type()
                              : computeType(result, n.graph.options.f64);
  Type wide = widened(n, scale);
  Value number = n.cast(x, wide);
  if (zero)
    number = n.binary<nn::SubOp>(number, n.cast(zero, wide));
  return n.finish(
      n.cast(n.binary<nn::MulOp>(number, n.cast(scale, wide)), result));
}

/// By the range of x, 0 included, in 255 steps.
static LogicalResult importDynamicQuantizeLinear(Importer &n) {
  if (!mayRound(n))
    return failure();
  Value x = n.operand(0);
  Type byte = n.graph.builder.getIntegerType(8, /*isSigned=*/false);
  SmallVector<int64_t> all =
      llvm::to_vector(llvm::seq<int64_t>(Importer::rank(x)));
  auto zeroAnd = [&](nn::ReductionKind kind) {
    return n.reduce(kind, x, all, /*keepDims=*/false);
  };
  Value high = zeroAnd(nn::ReductionKind::max),
        low = zeroAnd(nn::ReductionKind::min);
  high = n.binary<nn::MaxOp>(high, n.splatLike(high, 0));
  low = n.binary<nn::MinOp>(low, n.splatLike(low, 0));
  Value scale = n.binary<nn::DivOp>(n.binary<nn::SubOp>(high, low),
                                    n.splatLike(low, 255));
  // Of zeros alone any will do but 0, by which it divides.
  scale = n.select(
      n.compare(nn::ComparePredicate::eq, scale, n.splatLike(scale, 0)),
      n.splatLike(scale, 1), scale);
  if (n.hasFailed())
    return failure();
  Value zero = saturate(
      n,
      n.unary<nn::RoundOp>(n.binary<nn::DivOp>(n.unary<nn::NegOp>(low), scale)),
      byte);
  n.setResult(1, scale);
  n.setResult(2, zero);
  return n.finish(
      quantize(n, x, scale, zero, byte, Importer::element(scale), true));
}

/// Integers as f64, without their zero point, which broadcasts to them.
static Value centre(Importer &n, Value x, Value zero) {
  Type wide = n.graph.builder.getF64Type();
  if (Importer::isFloat(x)) {
    n.error() << "expected integers, found " << x.getType();
    return nullptr;
  }
  if (!zero)
    return n.cast(x, wide);
  return n.binary<nn::SubOp>(n.cast(x, wide), n.cast(zero, wide));
}

/// A number for each of several rows, or for each of the output channels of a
/// weight, the first of `rank` dimensions to be scaled.
static Value asColumn(Importer &n, Value numbers, int64_t rank) {
  if (!numbers || Importer::rank(numbers) != 1 ||
      Importer::shape(numbers)[0] == 1)
    return numbers;
  SmallVector<int64_t> shape(std::max<int64_t>(rank, 1), 1);
  shape[0] = Importer::shape(numbers)[0];
  return n.reshape(numbers, shape);
}

/// Exact products of integers as `type`'s, of this scale; a scale or zero point
/// of several numbers is one for each channel or row.
static Value requantize(Importer &n, Value product, Value left, Value right,
                        Value result, Value zero) {
  if (n.hasFailed())
    return nullptr;
  Type wide = widened(n, left);
  Value scale = n.binary<nn::MulOp>(n.cast(left, wide), n.cast(right, wide));
  scale = n.binary<nn::DivOp>(scale, n.cast(result, wide));
  product = n.binary<nn::MulOp>(n.cast(product, wide), scale);
  return quantize(n, product, n.splat({}, wide, 1), zero,
                  Importer::element(zero), wide, true);
}

static LogicalResult importMatMulInteger(Importer &n) {
  Value product =
      n.matmul(centre(n, n.operand(0), asColumn(n, n.operand(2), 2)),
               centre(n, n.operand(1), n.operand(3)));
  return n.finish(n.cast(product, n.graph.builder.getI32Type()));
}

static LogicalResult importQLinearMatMul(Importer &n) {
  if (!mayRound(n))
    return failure();
  Value product =
      n.matmul(centre(n, n.operand(0), asColumn(n, n.operand(2), 2)),
               centre(n, n.operand(3), n.operand(5)));
  return n.finish(requantize(n, product, asColumn(n, n.operand(1), 2),
                             n.operand(4), n.operand(6), n.operand(7)));
}

static LogicalResult importConvInteger(Importer &n) {
  int64_t rank = Importer::rank(n.operand(1));
  Value result =
      convolve(n, centre(n, n.operand(0), n.operand(2)),
               centre(n, n.operand(1), asColumn(n, n.operand(3), rank)));
  return n.finish(n.cast(result, n.graph.builder.getI32Type()));
}

static LogicalResult importQLinearConv(Importer &n) {
  if (!mayRound(n))
    return failure();
  Value weight = n.operand(3), bias = n.operand(8);
  int64_t rank = Importer::rank(weight);
  Value result = convolve(n, centre(n, n.operand(0), n.operand(2)),
                          centre(n, weight, asColumn(n, n.operand(5), rank)));
  if (n.hasFailed())
    return failure();
  if (bias) // in the scale of the products
    result = n.binary<nn::AddOp>(
        result, n.cast(asColumn(n, bias, rank - 1), Importer::element(result)));
  return n.finish(requantize(n, result, n.operand(1),
                             asColumn(n, n.operand(4), rank - 1), n.operand(6),
                             n.operand(7)));
}

ArrayRef<OpRow> accel::import::quantizationOps() {
  static const OpRow rows[] = {
      {"", "ConvInteger", 10, 2, 4, importConvInteger},
      {"", "DequantizeLinear", 10, 2, 3, importDequantizeLinear},
      {"", "DynamicQuantizeLinear", 11, 1, 1, importDynamicQuantizeLinear},
      {"", "MatMulInteger", 10, 2, 4, importMatMulInteger},
      {"", "QLinearConv", 10, 8, 9, importQLinearConv},
      {"", "QLinearMatMul", 10, 8, 8, importQLinearMatMul},
      {"", "QuantizeLinear", 10, 2, 3, importQuantizeLinear},
  };
  return rows;
}
