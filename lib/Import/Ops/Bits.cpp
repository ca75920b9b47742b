// Import of operators on the bits of integers.

#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

static bool hasIntegers(Importer &n) {
  for (unsigned index = 0; index < n.operandCount(); ++index)
    if (Importer::isFloat(n.operand(index))) {
      n.error() << "expected integers, found " << n.operand(index).getType();
      return false;
    }
  return true;
}

template <typename Op> static LogicalResult importBitwise(Importer &n) {
  if (!hasIntegers(n))
    return failure();
  return n.finish(n.binary<Op>(n.operand(0), n.operand(1)));
}

/// What is in one of them and not in both: nothing is borrowed.
static LogicalResult importBitwiseXor(Importer &n) {
  if (!hasIntegers(n))
    return failure();
  Value x = n.operand(0), y = n.operand(1);
  return n.finish(
      n.binary<nn::SubOp>(n.binary<nn::OrOp>(x, y), n.binary<nn::AndOp>(x, y)));
}

static LogicalResult importBitwiseNot(Importer &n) {
  if (!hasIntegers(n))
    return failure();
  Value x = n.operand(0);
  auto type = RankedTensorType::get({}, Importer::element(x));
  Value all = n.constant(DenseElementsAttr::get(
      type, APInt::getAllOnes(type.getElementTypeBitWidth())));
  return n.finish(n.binary<nn::SubOp>(all, x));
}

/// Times or by a power of two. Shifted by all bits or more, or by less than
/// none, what is left is what fills the gap: 0, or, shifted to the right, the
/// sign.
static LogicalResult importBitShift(Importer &n) {
  std::string direction = n.stringAttr("direction", "");
  bool isLeft = direction == "LEFT";
  if (!isLeft && direction != "RIGHT")
    return n.error() << "expected 'direction' to be LEFT or RIGHT, found '"
                     << direction << "'";
  Value x = n.operand(0), by = n.operand(1);
  if (!hasIntegers(n))
    return failure();
  if (Importer::element(by) != Importer::element(x))
    return n.error() << "expected integers of one type, found " << x.getType()
                     << " and " << by.getType();
  using P = nn::ComparePredicate;
  bool isSigned = !Importer::element(x).isUnsignedInteger();
  double bits = Importer::element(x).getIntOrFloatBitWidth();
  // The last power that is above 0 in the type; one more is another step.
  Value zero = n.splatLike(by, 0), last = n.splatLike(by, bits - 2);
  Value within = n.binary<nn::MaxOp>(n.binary<nn::MinOp>(by, last), zero);
  Value power = n.binary<nn::PowOp>(n.splatLike(by, 2), within);
  auto step = [&](Value value, Value factor) {
    if (isLeft)
      return n.binary<nn::MulOp>(value, factor);
    if (isSigned) // towards minus infinity
      value = n.binary<nn::SubOp>(value, n.binary<nn::ModOp>(value, factor));
    return n.binary<nn::DivOp>(value, factor);
  };
  Value shifted = step(x, power);
  Value next = step(shifted, n.splatLike(shifted, 2));
  shifted = n.select(n.compare(P::gt, by, last), next, shifted);
  Value fill = n.splatLike(shifted, 0);
  if (isSigned && !isLeft)
    fill = n.select(n.compare(P::lt, x, n.splatLike(x, 0)),
                    n.splatLike(shifted, -1), fill);
  Value isBeyond = n.compare(P::ge, by, n.splatLike(by, bits));
  if (isSigned)
    isBeyond = n.binary<nn::OrOp>(isBeyond, n.compare(P::lt, by, zero));
  return n.finish(n.select(isBeyond, fill, shifted));
}

/// A truth value is a byte of 0 or 1.
static LogicalResult importBitCast(Importer &n) {
  int64_t to = n.intAttr("to", 0);
  Value x = n.operand(0);
  Type element = elementType(to, n.loc.getContext());
  if (!element)
    return n.error() << "element type #" << to << " is not supported";
  Type byte = n.graph.builder.getIntegerType(8, /*isSigned=*/false);
  bool toBool = element.isInteger(1);
  if (Importer::element(x).isInteger(1))
    x = n.cast(x, byte);
  if (toBool)
    element = byte;
  if (x && Importer::element(x) != element)
    x = n.create<nn::BitcastOp>(
        x, {}, RankedTensorType::get(Importer::shape(x), element));
  return n.finish(toBool ? n.cast(x, n.graph.builder.getI1Type()) : x);
}

ArrayRef<OpRow> accel::import::bitOps() {
  static const OpRow rows[] = {
      {"", "BitCast", 26, 1, 1, importBitCast},
      {"", "BitShift", 11, 2, 2, importBitShift},
      {"", "BitwiseAnd", 18, 2, 2, importBitwise<nn::AndOp>},
      {"", "BitwiseNot", 18, 1, 1, importBitwiseNot},
      {"", "BitwiseOr", 18, 2, 2, importBitwise<nn::OrOp>},
      {"", "BitwiseXor", 18, 2, 2, importBitwiseXor},
  };
  return rows;
}
