// Import of activation functions: what of each side of a kink has the gradient
// is what PyTorch says of it (docs/Numerics.md).

#include "lib/Import/Activations.h"
#include "lib/Import/Kinks.h"
#include "lib/Import/OpTable.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;
using P = nn::ComparePredicate;

static Value isAbove(Importer &n, Value x, double bound) {
  return n.compare(P::gt, x, n.splatLike(x, bound));
}

Value import::leakyRelu(Importer &n, Value x, double alpha) {
  return n.select(isAbove(n, x, 0), x, n.scale(x, alpha));
}
static LogicalResult importLeakyRelu(Importer &n) {
  return n.finish(leakyRelu(n, n.operand(0), n.floatAttr("alpha", 0.01f)));
}

/// The slope is broadcast to the input, which is not broadcast.
static LogicalResult importPRelu(Importer &n) {
  Value x = n.operand(0), slope = n.operand(1);
  Value scaled = n.binary<nn::MulOp>(x, slope);
  if (scaled && Importer::shape(scaled) != Importer::shape(x))
    return n.error() << "expected a slope that broadcasts to " << x.getType()
                     << ", found " << slope.getType();
  return n.finish(n.select(isAbove(n, x, 0), x, scaled));
}

Value import::thresholdedRelu(Importer &n, Value x, double alpha) {
  return n.select(isAbove(n, x, alpha), x, n.splatLike(x, 0));
}
static LogicalResult importThresholdedRelu(Importer &n) {
  return n.finish(thresholdedRelu(n, n.operand(0), n.floatAttr("alpha", 1)));
}

/// factor · x where x is positive, else factor · alpha · (e^(x / width) - 1).
/// What is positive does not reach the power, which would overflow.
static Value exponentialUnit(Importer &n, Value x, double alpha, double factor,
                             double width) {
  Value isPositive = isAbove(n, x, 0);
  Value negative = n.select(isPositive, n.splatLike(x, 0), x);
  Value power = n.unary<nn::ExpOp>(n.scale(negative, 1 / width));
  Value below =
      n.scale(n.binary<nn::SubOp>(power, n.splatLike(x, 1)), factor * alpha);
  return n.select(isPositive, factor == 1 ? x : n.scale(x, factor), below);
}
Value import::elu(Importer &n, Value x, double alpha) {
  return exponentialUnit(n, x, alpha, 1, 1);
}
static LogicalResult importElu(Importer &n) {
  return n.finish(elu(n, n.operand(0), n.floatAttr("alpha", 1)));
}
static LogicalResult importCelu(Importer &n) {
  double alpha = n.floatAttr("alpha", 1);
  if (alpha == 0)
    return n.error() << "expected an 'alpha' other than 0, by which it divides";
  return n.finish(exponentialUnit(n, n.operand(0), alpha, 1, alpha));
}
/// Klambauer et al., arXiv:1706.02515; the constants are the schema's.
static LogicalResult importSelu(Importer &n) {
  double alpha = n.floatAttr("alpha", 1.6732631921768188f);
  return n.finish(exponentialUnit(
      n, n.operand(0), alpha, n.floatAttr("gamma", 1.0507010221481323f), 1));
}

Value import::hardSigmoid(Importer &n, Value x, double alpha, double beta) {
  Value line = n.binary<nn::AddOp>(n.scale(x, alpha), n.splatLike(x, beta));
  return clip(n, line, n.splatLike(x, 0), n.splatLike(x, 1), /*strict=*/true);
}
static LogicalResult importHardSigmoid(Importer &n) {
  double alpha = n.floatAttr("alpha", 0.2f), beta = n.floatAttr("beta", 0.5f);
  return n.finish(hardSigmoid(n, n.operand(0), alpha, beta));
}
/// x, x (x/6 + 1/2) or 0. On the bounds, where the slopes differ, PyTorch takes
/// those of the outer pieces, as here.
static LogicalResult importHardSwish(Importer &n) {
  Value x = n.operand(0), zero = n.splatLike(x, 0), three = n.splatLike(x, 3);
  Value line = n.binary<nn::AddOp>(n.scale(x, 1.0 / 6), n.splatLike(x, 0.5));
  Value low = n.compare(P::le, x, n.splatLike(x, -3));
  Value high = n.compare(P::ge, x, three);
  Value curve = n.binary<nn::MulOp>(x, line);
  return n.finish(n.select(low, zero, n.select(high, x, curve)));
}

/// max(x, 0) + log(1 + e^-|x|), which does not overflow.
Value import::softplus(Importer &n, Value x) {
  Value small = n.unary<nn::ExpOp>(n.unary<nn::NegOp>(n.unary<nn::AbsOp>(x)));
  Value tail = n.unary<nn::Log1pOp>(small);
  return n.binary<nn::AddOp>(n.binary<nn::MaxOp>(x, n.splatLike(x, 0)), tail);
}
static LogicalResult importSoftplus(Importer &n) {
  return n.finish(softplus(n, n.operand(0)));
}
Value import::softsign(Importer &n, Value x) {
  Value size = n.binary<nn::AddOp>(n.unary<nn::AbsOp>(x), n.splatLike(x, 1));
  return n.binary<nn::DivOp>(x, size);
}
static LogicalResult importSoftsign(Importer &n) {
  return n.finish(softsign(n, n.operand(0)));
}
/// Misra, arXiv:1908.08681.
static LogicalResult importMish(Importer &n) {
  Value x = n.operand(0);
  return n.finish(n.binary<nn::MulOp>(x, n.unary<nn::TanhOp>(softplus(n, x))));
}
static LogicalResult importSwish(Importer &n) {
  double alpha = n.floatAttr("alpha", 1);
  Value x = n.operand(0);
  return n.finish(n.binary<nn::MulOp>(
      x, n.unary<nn::SigmoidOp>(alpha == 1 ? x : n.scale(x, alpha))));
}

/// What is within `lambd` of 0 is 0; all else is `bias` nearer to it.
static LogicalResult importShrink(Importer &n) {
  double lambd = n.floatAttr("lambd", 0.5), bias = n.floatAttr("bias", 0);
  Value x = n.operand(0);
  if (!Importer::isFloat(x))
    return n.error() << "expected floats, found " << x.getType();
  Value isLow = n.compare(P::lt, x, n.splatLike(x, -lambd));
  Value raised = n.binary<nn::AddOp>(x, n.splatLike(x, bias));
  Value lowered = n.binary<nn::SubOp>(x, n.splatLike(x, bias));
  Value rest = n.select(isAbove(n, x, lambd), lowered, n.splatLike(x, 0));
  return n.finish(n.select(isLow, raised, rest));
}

static LogicalResult importGelu(Importer &n) {
  std::string kind = n.stringAttr("approximate", "none");
  if (kind != "none" && kind != "tanh")
    return n.error() << "expected 'approximate' to be 'none' or 'tanh', found '"
                     << kind << "'";
  auto attribute = nn::GeluKindAttr::get(n.loc.getContext(),
                                         kind == "tanh" ? nn::GeluKind::tanh
                                                        : nn::GeluKind::erf);
  return n.finish(
      n.create<nn::GeluOp>(n.operand(0), n.named("kind", attribute)));
}

ArrayRef<OpRow> accel::import::activationOps() {
  static const OpRow rows[] = {
      {"", "Celu", 12, 1, 1, importCelu},
      {"", "Elu", 6, 1, 1, importElu},
      {"", "Gelu", 20, 1, 1, importGelu},
      {"", "HardSigmoid", 6, 1, 1, importHardSigmoid},
      {"", "HardSwish", 14, 1, 1, importHardSwish},
      {"", "LeakyRelu", 6, 1, 1, importLeakyRelu},
      {"", "Mish", 18, 1, 1, importMish},
      {"", "PRelu", 7, 2, 2, importPRelu},
      {"", "Selu", 6, 1, 1, importSelu},
      {"", "Shrink", 9, 1, 1, importShrink},
      {"", "Softplus", 1, 1, 1, importSoftplus},
      {"", "Softsign", 1, 1, 1, importSoftsign},
      {"", "Swish", 24, 1, 1, importSwish},
      {"", "ThresholdedRelu", 10, 1, 1, importThresholdedRelu},
  };
  return rows;
}
