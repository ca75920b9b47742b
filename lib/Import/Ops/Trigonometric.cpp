// Import of the trigonometric and hyperbolic functions that nn has no op for,
// in forms that keep all digits where others cancel, and do not overflow where
// the result does not.

#include "lib/Import/Kinks.h"
#include "lib/Import/NodeImporter.h"
#include "lib/Import/OpTable.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;
using P = nn::ComparePredicate;

static LogicalResult importTan(Importer &n) {
  Value x = n.operand(0);
  return n.finish(
      n.binary<nn::DivOp>(n.unary<nn::SinOp>(x), n.unary<nn::CosOp>(x)));
}

/// atan(x / root(1 - x^2)), at ±1 too, where it is atan(±infinity).
static Value asin(Importer &n, Value x) {
  Value one = n.splatLike(x, 1);
  Value rest = n.binary<nn::MulOp>(n.binary<nn::SubOp>(one, x),
                                   n.binary<nn::AddOp>(one, x));
  return n.unary<nn::AtanOp>(n.binary<nn::DivOp>(x, n.unary<nn::SqrtOp>(rest)));
}
static LogicalResult importAsin(Importer &n) {
  return n.finish(asin(n, n.operand(0)));
}
static LogicalResult importAcos(Importer &n) {
  Value x = n.operand(0);
  return n.finish(n.binary<nn::SubOp>(n.splatLike(x, M_PI_2), asin(n, x)));
}
/// Of a point that PyTorch's exporters divide the coordinates of: wrong where
/// the second is negative and the first 0, and no number on an axis.
static LogicalResult importAtan(Importer &n) {
  if (n.graph.options.forTraining && isTracedAs(n.node, "atan2"))
    return n.error() << "expected the angle of a point (atan2) as a formula "
                        "that holds everywhere, found the exporter's quotient: "
                     << onnxio::kAccExportRemedy;
  return n.finish(n.unary<nn::AtanOp>(n.operand(0)));
}

/// (e^(x/2) · e^(x/2) + e^(-x/2) · e^(-x/2)) / 2: no power of it is more than
/// the result.
static Value cosh(Importer &n, Value x) {
  auto halfOfPower = [&](double sign) {
    Value root = n.unary<nn::ExpOp>(n.scale(x, sign / 2));
    return n.binary<nn::MulOp>(n.scale(root, 0.5), root);
  };
  return n.binary<nn::AddOp>(halfOfPower(1), halfOfPower(-1));
}
static LogicalResult importCosh(Importer &n) {
  return n.finish(cosh(n, n.operand(0)));
}
/// By the tangent, which has all digits near 0.
static LogicalResult importSinh(Importer &n) {
  Value x = n.operand(0);
  return n.finish(n.binary<nn::MulOp>(n.unary<nn::TanhOp>(x), cosh(n, x)));
}

/// log(b) + log(1 + root(1 + sign / b^2)), for b in which b^2 may overflow.
static Value logOfSum(Importer &n, Value b, double sign) {
  Value inverse = n.unary<nn::ReciprocalOp>(b);
  Value square = n.binary<nn::MulOp>(inverse, inverse);
  Value root = n.unary<nn::SqrtOp>(n.plus(n.scale(square, sign), 1));
  return n.binary<nn::AddOp>(n.unary<nn::LogOp>(b), n.unary<nn::Log1pOp>(root));
}
/// log(|x| + root(x^2 + 1)) with the sign of x: below 2 as log1p of
/// |x| + x^2 / (1 + root(x^2 + 1)), which has all digits near 0.
static LogicalResult importAsinh(Importer &n) {
  Value x = n.operand(0), two = n.splatLike(x, 2);
  Value isNegative = n.compare(P::lt, x, n.splatLike(x, 0));
  Value size = n.select(isNegative, n.unary<nn::NegOp>(x), x);
  Value isLarge = n.compare(P::gt, size, two);
  Value small = n.select(isLarge, two, size);
  Value square = n.binary<nn::MulOp>(small, small);
  Value root = n.unary<nn::SqrtOp>(n.plus(square, 1));
  Value rest = n.binary<nn::DivOp>(square, n.plus(root, 1));
  Value near = n.unary<nn::Log1pOp>(n.binary<nn::AddOp>(small, rest));
  Value far = logOfSum(n, n.select(isLarge, size, two), 1);
  Value result = n.select(isLarge, far, near);
  return n.finish(n.select(isNegative, n.unary<nn::NegOp>(result), result));
}
/// log(x + root(x^2 - 1)): below 2, with t = x - 1, as log1p of
/// t + root(t (t + 2)), which has all digits near 1.
static LogicalResult importAcosh(Importer &n) {
  Value x = n.operand(0), two = n.splatLike(x, 2);
  Value isLarge = n.compare(P::gt, x, two);
  Value t = n.plus(n.select(isLarge, two, x), -1);
  Value root = n.unary<nn::SqrtOp>(n.binary<nn::MulOp>(t, n.plus(t, 2)));
  Value near = n.unary<nn::Log1pOp>(n.binary<nn::AddOp>(t, root));
  Value far = logOfSum(n, n.select(isLarge, x, two), -1);
  return n.finish(n.select(isLarge, far, near));
}
static LogicalResult importAtanh(Importer &n) {
  Value x = n.operand(0);
  Value above = n.unary<nn::Log1pOp>(x);
  Value below = n.unary<nn::Log1pOp>(n.unary<nn::NegOp>(x));
  return n.finish(n.scale(n.binary<nn::SubOp>(above, below), 0.5));
}

ArrayRef<OpRow> accel::import::trigonometricOps() {
  static const OpRow rows[] = {
      {"", "Acos", 7, 1, 1, importAcos}, {"", "Acosh", 9, 1, 1, importAcosh},
      {"", "Asin", 7, 1, 1, importAsin}, {"", "Asinh", 9, 1, 1, importAsinh},
      {"", "Atan", 7, 1, 1, importAtan}, {"", "Atanh", 9, 1, 1, importAtanh},
      {"", "Cosh", 9, 1, 1, importCosh}, {"", "Sinh", 9, 1, 1, importSinh},
      {"", "Tan", 7, 1, 1, importTan},
  };
  return rows;
}
