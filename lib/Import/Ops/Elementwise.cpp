// Import of elementwise operators, comparisons and casts.

#include "lib/Import/Kinks.h"
#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"
#include "lib/Onnx/NodeInfo.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;
using P = nn::ComparePredicate;

template <typename Op> static LogicalResult unary(Importer &n) {
  return n.finish(n.unary<Op>(n.operand(0)));
}
template <typename Op> static LogicalResult binary(Importer &n) {
  return n.finish(n.binary<Op>(n.operand(0), n.operand(1)));
}
template <nn::ComparePredicate predicate>
static LogicalResult compare(Importer &n) {
  return n.finish(n.compare(predicate, n.operand(0), n.operand(1)));
}

/// Any number of operands, folded from the left.
template <typename Op> static Value fold(Importer &n) {
  SmallVector<Value> values;
  for (unsigned index = 0; index < n.operandCount(); ++index)
    values.push_back(n.operand(index));
  if (!n.broadcastTogether(values))
    return nullptr;
  Value result = values[0];
  for (Value value : llvm::drop_begin(values))
    result = n.create<Op>({result, value});
  return result;
}
/// Min, Max, Sum.
template <typename Op> static LogicalResult variadic(Importer &n) {
  return n.finish(fold<Op>(n));
}
static LogicalResult importMeanOfInputs(Importer &n) {
  Value sum = fold<nn::AddOp>(n);
  return n.finish(n.binary<nn::MulOp>(
      sum, n.splatLike(sum, 1.0 / double(n.operandCount()))));
}

static LogicalResult importCeil(Importer &n) {
  Value x = n.operand(0);
  return n.finish(
      n.unary<nn::NegOp>(n.unary<nn::FloorOp>(n.unary<nn::NegOp>(x))));
}

static LogicalResult importSign(Importer &n) {
  Value x = n.operand(0), zero = n.splatLike(x, 0);
  Value negative = n.compare(nn::ComparePredicate::lt, x, zero);
  Value positive = n.compare(nn::ComparePredicate::gt, x, zero);
  // Neither branch is taken for 0 and NaN, which stay what they are; the
  // gradient is 0 there as well.
  Value rest = Importer::isFloat(x) ? n.binary<nn::MulOp>(x, zero) : x;
  Value result = n.select(positive, n.splatLike(x, 1), rest);
  if (x && Importer::element(x).isUnsignedInteger())
    return n.finish(result);
  return n.finish(n.select(negative, n.splatLike(x, -1), result));
}

static LogicalResult importClip(Importer &n) {
  bool strict = isTracedAs(n.node, "hardtanh") || isTracedAs(n.node, "relu6");
  return n.finish(clip(n, n.operand(0), n.operand(1), n.operand(2), strict));
}

/// Before opset 11 the bounds are attributes.
static LogicalResult importClipByAttributes(NodeImporter &n) {
  auto bound = [&](StringRef name) {
    return n.hasAttribute(name)
               ? n.splat({}, NodeImporter::element(n.operand(0)),
                         n.floatAttr(name, 0))
               : Value();
  };
  Value low = bound("min"), high = bound("max");
  return n.finish(clip(n, n.operand(0), low, high, /*strict=*/false));
}

/// Max and Min of two: halves of a clamp where the call says so.
template <bool isMax> static LogicalResult importExtreme(Importer &n) {
  using Op = std::conditional_t<isMax, nn::MaxOp, nn::MinOp>;
  StringRef call = onnxio::tracedOperator(n.node).split('.').first;
  if (n.operandCount() != 2 ||
      (call != "clamp" && call != "clamp_min" && call != "clamp_max"))
    return variadic<Op>(n);
  return n.finish(clip(n, n.operand(0), isMax ? n.operand(1) : Value(),
                       isMax ? Value() : n.operand(1), /*strict=*/false));
}

/// The root of a variance is a standard deviation, whose gradient PyTorch has 0
/// where it is 0; any other root's is infinite there.
static LogicalResult importSqrt(Importer &n) {
  auto root = [&](Value x) { return n.unary<nn::SqrtOp>(x); };
  Value x = n.operand(0);
  const onnx::NodeProto *producer = n.findProducer(n.node.input(0));
  bool deviation =
      producer && isTracedAs(*producer, "var") && isTracedAs(n.node, "sqrt");
  return n.finish(deviation ? zeroAtZero(n, x, root) : root(x));
}

/// The remainder with the sign of the divisor, of that of the dividend.
static Value floorModulo(Importer &n, Value x, Value y) {
  Value rest = n.binary<nn::ModOp>(x, y), zero = n.splatLike(rest, 0);
  Value isBelow = n.compare(P::lt, y, n.splatLike(y, 0));
  Value differs = n.compare(P::ne, n.compare(P::lt, rest, zero), isBelow);
  Value none = n.select(isBelow, n.splatLike(rest, -0.0), zero);
  Value other = n.select(differs, n.binary<nn::AddOp>(rest, y), rest);
  return n.select(n.compare(P::eq, rest, zero), none, other);
}

static LogicalResult importMod(Importer &n) {
  int64_t fmod = n.intAttr("fmod", 0);
  Value lhs = n.operand(0), rhs = n.operand(1);
  if (Importer::isFloat(lhs) && fmod == 0 && n.version < 28)
    return n.error() << "expected 'fmod' of 1 for floats, found 0 for "
                     << lhs.getType();
  if (Importer::isFloat(lhs) && fmod == 0)
    return n.finish(floorModulo(n, lhs, rhs));
  // Of integers the sign is the divisor's, and with `fmod` the dividend's.
  if (!Importer::isFloat(lhs) && fmod != 0)
    return n.finish(n.binary<nn::SubOp>(
        lhs, n.binary<nn::MulOp>(n.binary<nn::DivOp>(lhs, rhs), rhs)));
  return n.finish(n.binary<nn::ModOp>(lhs, rhs));
}

/// The exponent may have another type than the base; the base's is kept.
static LogicalResult importPow(Importer &n) {
  Value base = n.operand(0), exponent = n.operand(1);
  if (isTracedAs(n.node, "linalg_vector_norm"))
    return n.finish(zeroAtZero(n, base, [&](Value x) {
      return n.binary<nn::PowOp>(x, n.cast(exponent, Importer::element(x)));
    }));
  if (Importer::isFloat(base) || !Importer::isFloat(exponent))
    return n.finish(
        n.binary<nn::PowOp>(base, n.cast(exponent, Importer::element(base))));
  Value power =
      n.binary<nn::PowOp>(n.cast(base, Importer::element(exponent)), exponent);
  return n.finish(n.cast(power, Importer::element(base)));
}

/// Swish of the gate, times the other.
static LogicalResult importSwiGlu(Importer &n) {
  double alpha = n.floatAttr("alpha", 1);
  Value gate = n.operand(0), value = n.operand(1);
  if (Importer::shape(gate) != Importer::shape(value))
    return n.error() << "expected operands of one shape, found "
                     << gate.getType() << " and " << value.getType();
  Value open = n.unary<nn::SigmoidOp>(alpha == 1 ? gate : n.scale(gate, alpha));
  return n.finish(n.binary<nn::MulOp>(n.binary<nn::MulOp>(gate, open), value));
}

static LogicalResult importXor(Importer &n) {
  return n.finish(
      n.compare(nn::ComparePredicate::ne, n.operand(0), n.operand(1)));
}

static LogicalResult importIsInf(Importer &n) {
  int64_t negative = n.intAttr("detect_negative", 1);
  int64_t positive = n.intAttr("detect_positive", 1);
  Value x = n.operand(0);
  if (!Importer::isFloat(x))
    return n.error() << "expected floats, found " << x.getType();
  if (negative && positive)
    x = n.unary<nn::AbsOp>(x);
  else if (negative)
    x = n.unary<nn::NegOp>(x);
  Value result =
      n.compare(nn::ComparePredicate::eq, x,
                n.splatLike(x, std::numeric_limits<double>::infinity()));
  if (!negative && !positive)
    result = n.splatLike(result, 0);
  return n.finish(result);
}

static LogicalResult importWhere(Importer &n) {
  return n.finish(n.select(n.operand(0), n.operand(1), n.operand(2)));
}

/// The power of two next to a positive number, away from zero or towards it.
static Value roundToPower(Importer &n, Value x, bool isUp) {
  if (!Importer::element(x).isF64())
    x = n.cast(x, n.graph.builder.getF32Type());
  Value below = n.create<nn::FloorPower2Op>(x);
  if (!isUp)
    return below;
  Value isPower = n.compare(nn::ComparePredicate::eq, below, x);
  Value two = n.splat(Importer::shape(x), Importer::element(x), 2);
  return n.select(isPower, below, n.create<nn::MulOp>({below, two}));
}

/// To a float of 8 bits or less, as the node's attributes say.
static Value castToCode(Importer &n, Value x, Type type) {
  bool saturates = n.intAttr("saturate", 1) != 0;
  std::string mode = n.stringAttr("round_mode", "up");
  if (!Importer::isFloat(x))
    x = n.cast(x, n.graph.builder.getF32Type());
  if (isa<Float8E8M0FNUType>(type) && mode != "nearest") {
    if (mode != "up" && mode != "down") {
      n.error() << "expected up, down or nearest as 'round_mode', found '"
                << mode << "'";
      return nullptr;
    }
    x = roundToPower(n, x, mode == "up");
  }
  if (!x || Importer::element(x) == type)
    return x;
  SmallVector<NamedAttribute> attributes;
  if (saturates)
    attributes.push_back(n.unit("saturate"));
  return n.create<nn::CastOp>(x, attributes,
                              RankedTensorType::get(Importer::shape(x), type));
}

static bool isCode(Type type) {
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() <= 8;
}

static LogicalResult importCast(Importer &n) {
  int64_t to = n.intAttr("to", 0);
  Type type = elementType(to, n.loc.getContext());
  if (!type)
    return n.error() << "element type #" << to << " is not supported";
  Type computed = computeType(type, n.graph.options.f64);
  Value x = n.operand(0);
  if (isCode(type))
    return n.finish(n.cast(castToCode(n, x, type), computed));
  // Of codes alone.
  n.ignoreAttr("saturate");
  n.ignoreAttr("round_mode");
  // A model in f32 that rounds to a narrower type means to round: PyTorch does
  // so in float64 as well. What a narrow model says of its own type is no more
  // than that.
  bool rounds = computed != type && type.getIntOrFloatBitWidth() < 32 &&
                Importer::isFloat(x) && !n.graph.isNarrow();
  return n.finish(n.cast(rounds ? n.cast(x, type) : x, computed));
}

static LogicalResult importCastLike(Importer &n) {
  Type type = Importer::element(n.operand(1));
  if (isCode(type))
    return n.finish(castToCode(n, n.operand(0), type));
  n.ignoreAttr("saturate");
  n.ignoreAttr("round_mode");
  return n.finish(n.cast(n.operand(0), type));
}

ArrayRef<OpRow> accel::import::elementwiseOps() {
  static const OpRow rows[] = {
      {"", "Abs", 6, 1, 1, unary<nn::AbsOp>},
      {"", "Add", 7, 2, 2, binary<nn::AddOp>},
      {"", "And", 7, 2, 2, binary<nn::AndOp>},
      {"", "Cast", 6, 1, 1, importCast},
      {"", "CastLike", 15, 2, 2, importCastLike},
      {"", "Ceil", 6, 1, 1, importCeil},
      {"", "Clip", 6, 1, 1, importClipByAttributes},
      {"", "Clip", 11, 1, 3, importClip},
      {"", "Cos", 7, 1, 1, unary<nn::CosOp>},
      {"", "Div", 7, 2, 2, binary<nn::DivOp>},
      {"", "Equal", 7, 2, 2, compare<P::eq>},
      {"", "Erf", 9, 1, 1, unary<nn::ErfOp>},
      {"", "Exp", 6, 1, 1, unary<nn::ExpOp>},
      {"", "Floor", 6, 1, 1, unary<nn::FloorOp>},
      {"", "Greater", 7, 2, 2, compare<P::gt>},
      {"", "GreaterOrEqual", 12, 2, 2, compare<P::ge>},
      {"", "IsInf", 10, 1, 1, importIsInf},
      {"", "IsNaN", 9, 1, 1, unary<nn::IsNanOp>},
      {"", "Less", 7, 2, 2, compare<P::lt>},
      {"", "LessOrEqual", 12, 2, 2, compare<P::le>},
      {"", "Log", 6, 1, 1, unary<nn::LogOp>},
      {"", "Max", 6, 1, -1, importExtreme<true>},
      {"", "Mean", 6, 1, -1, importMeanOfInputs},
      {"", "Min", 6, 1, -1, importExtreme<false>},
      {"", "Mod", 10, 2, 2, importMod},
      {"", "Mul", 7, 2, 2, binary<nn::MulOp>},
      {"", "Neg", 6, 1, 1, unary<nn::NegOp>},
      {"", "Not", 1, 1, 1, unary<nn::NotOp>},
      {"", "Or", 7, 2, 2, binary<nn::OrOp>},
      {"", "Pow", 7, 2, 2, importPow},
      {"", "Reciprocal", 6, 1, 1, unary<nn::ReciprocalOp>},
      {"", "Relu", 6, 1, 1, unary<nn::ReluOp>},
      {"", "Round", 11, 1, 1, unary<nn::RoundOp>},
      {"", "Sigmoid", 6, 1, 1, unary<nn::SigmoidOp>},
      {"", "Sign", 9, 1, 1, importSign},
      {"", "Sin", 7, 1, 1, unary<nn::SinOp>},
      {"", "Sqrt", 6, 1, 1, importSqrt},
      {"", "Sub", 7, 2, 2, binary<nn::SubOp>},
      {"", "Sum", 6, 1, -1, variadic<nn::AddOp>},
      {"", "SwiGLU", 28, 2, 2, importSwiGlu},
      {"", "Tanh", 6, 1, 1, unary<nn::TanhOp>},
      {"", "Where", 9, 3, 3, importWhere},
      {"", "Xor", 7, 2, 2, importXor},
  };
  return rows;
}
