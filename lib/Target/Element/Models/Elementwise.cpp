// The scalar code of elementwise ops.

#include "Group.h"
#include "Unsigned.h"
#include "dialects/Interfaces/ElementSource.h"
#include "dialects/NN/NN.h"
#include "dialects/Tensor/Tensor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <cmath>

using namespace mlir;
using namespace accel;

// Products may be fused with sums (contract); nothing else is reordered, so
// that NaN and infinities mean what they mean.
static constexpr arith::FastMathFlags kFlags = arith::FastMathFlags::contract;

static Type elementType(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

static bool isFloat(Value value) { return isa<FloatType>(value.getType()); }

static Value floatLike(ImplicitLocOpBuilder &b, Value like, double value) {
  return arith::ConstantOp::create(b, b.getFloatAttr(like.getType(), value));
}

static Value zeroLike(ImplicitLocOpBuilder &b, Value value) {
  return arith::ConstantOp::create(b, b.getZeroAttr(value.getType()));
}

static Value lessThan(ImplicitLocOpBuilder &b, Value x, Value y,
                      bool isUnsigned) {
  if (isFloat(x))
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y);
  return arith::CmpIOp::create(
      b, isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt, x,
      y);
}

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

static Value emitUnary(ElementBuilder &e, nn::NegOp, Value x) {
  ImplicitLocOpBuilder &b = e.builder();
  if (isFloat(x))
    return arith::NegFOp::create(b, x);
  return arith::SubIOp::create(b, zeroLike(b, x), x);
}
static Value emitUnary(ElementBuilder &e, nn::AbsOp op, Value x) {
  ImplicitLocOpBuilder &b = e.builder();
  if (isFloat(x))
    return LLVM::FAbsOp::create(b, x);
  if (isUnsigned(elementType(op.getInput())))
    return x;
  Value zero = zeroLike(b, x);
  return arith::SelectOp::create(b, lessThan(b, x, zero, false),
                                 arith::SubIOp::create(b, zero, x), x);
}
static Value emitUnary(ElementBuilder &e, nn::ExpOp op, Value x) {
  auto neg = op.getInput().getDefiningOp<nn::NegOp>();
  bool nonPositive = neg && neg.getInput().getDefiningOp<nn::AbsOp>();
  return e.call(
      nonPositive ? ScalarFunction::ExpOfNonPositive : ScalarFunction::Exp, x);
}
static Value emitUnary(ElementBuilder &e, nn::LogOp, Value x) {
  return e.call(ScalarFunction::Log, x);
}
static Value emitUnary(ElementBuilder &e, nn::Log1pOp, Value x) {
  return e.call(ScalarFunction::Log1p, x);
}
static Value emitUnary(ElementBuilder &e, nn::SqrtOp, Value x) {
  return e.call(ScalarFunction::Sqrt, x);
}
static Value emitUnary(ElementBuilder &e, nn::RsqrtOp, Value x) {
  ImplicitLocOpBuilder &b = e.builder();
  return arith::DivFOp::create(b, floatLike(b, x, 1),
                               e.call(ScalarFunction::Sqrt, x));
}
static Value emitUnary(ElementBuilder &e, nn::ReciprocalOp, Value x) {
  ImplicitLocOpBuilder &b = e.builder();
  return arith::DivFOp::create(b, floatLike(b, x, 1), x);
}
static Value emitUnary(ElementBuilder &e, nn::TanhOp, Value x) {
  return e.call(ScalarFunction::Tanh, x);
}
static Value emitUnary(ElementBuilder &e, nn::ErfOp, Value x) {
  return e.call(ScalarFunction::Erf, x);
}
static Value emitUnary(ElementBuilder &e, nn::SigmoidOp, Value x) {
  return e.call(ScalarFunction::Sigmoid, x);
}
static Value emitUnary(ElementBuilder &e, nn::ReluOp, Value x) {
  ImplicitLocOpBuilder &b = e.builder();
  Value zero = zeroLike(b, x);
  return arith::SelectOp::create(b, lessThan(b, x, zero, false), zero, x);
}
static Value emitUnary(ElementBuilder &e, nn::SinOp, Value x) {
  return e.call(ScalarFunction::Sin, x);
}
static Value emitUnary(ElementBuilder &e, nn::CosOp, Value x) {
  return e.call(ScalarFunction::Cos, x);
}
static Value emitUnary(ElementBuilder &e, nn::AtanOp, Value x) {
  return e.call(ScalarFunction::Atan, x);
}
static Value emitUnary(ElementBuilder &e, nn::BitcastOp op, Value x) {
  Type to = elementType(op.getResult());
  return isa<FloatType>(x.getType()) || isa<FloatType>(to)
             ? arith::BitcastOp::create(e.builder(), e.getComputeType(to), x)
                   .getResult()
             : x; // signless in a kernel
}
static Value emitUnary(ElementBuilder &e, nn::FloorOp, Value x) {
  ImplicitLocOpBuilder &b = e.builder();
  return LLVM::FFloorOp::create(b, x);
}
static Value emitUnary(ElementBuilder &e, nn::RoundOp, Value x) {
  ImplicitLocOpBuilder &b = e.builder();
  return LLVM::RoundEvenOp::create(b, x);
}
/// Without its fraction bits a normal number is that power; a smaller one is
/// made normal first, and infinity and NaN have none to lose.
static Value emitUnary(ElementBuilder &e, nn::FloorPower2Op, Value x) {
  ImplicitLocOpBuilder &b = e.builder();
  auto type = cast<FloatType>(x.getType());
  const llvm::fltSemantics &format = type.getFloatSemantics();
  unsigned width = type.getWidth(),
           fraction = llvm::APFloat::semanticsPrecision(format) - 1;
  Type bits = b.getIntegerType(width);
  auto clear = [&](Value number) -> Value {
    Value mask = arith::ConstantOp::create(
        b, b.getIntegerAttr(
               bits, llvm::APInt::getHighBitsSet(width, width - fraction)));
    Value kept = arith::AndIOp::create(
        b, arith::BitcastOp::create(b, bits, number), mask);
    return arith::BitcastOp::create(b, type, kept);
  };
  double up = std::ldexp(1.0, static_cast<int>(fraction) + 1);
  Value raised = arith::MulFOp::create(b, x, floatLike(b, x, up));
  Value lowered =
      arith::MulFOp::create(b, clear(raised), floatLike(b, x, 1 / up));
  double least = llvm::APFloat::getSmallestNormalized(format).convertToDouble();
  Value size = LLVM::FAbsOp::create(b, x);
  Value isSmall = lessThan(b, size, floatLike(b, x, least), false);
  Value power = arith::SelectOp::create(b, isSmall, lowered, clear(x));
  Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
  return arith::SelectOp::create(b, isNan, x, power);
}
static Value emitUnary(ElementBuilder &e, nn::NotOp, Value x) {
  ImplicitLocOpBuilder &b = e.builder();
  Value one = arith::ConstantIntOp::create(b, 1, 1);
  return arith::XOrIOp::create(b, x, one);
}
static Value emitUnary(ElementBuilder &e, nn::IsNanOp, Value x) {
  ImplicitLocOpBuilder &b = e.builder();
  return arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
}
// x/2 (1 + tanh u) = x / (1 + exp(-2u)): one division, and no difference of
// nearly equal numbers.
static Value emitUnary(ElementBuilder &e, nn::GeluOp op, Value x) {
  ImplicitLocOpBuilder &b = e.builder();
  if (op.getKind() == nn::GeluKind::erf) {
    Value scaled =
        arith::MulFOp::create(b, x, floatLike(b, x, 0.70710678118654752440));
    Value half = arith::MulFOp::create(b, x, floatLike(b, x, 0.5));
    return LLVM::FMAOp::create(b, half, e.call(ScalarFunction::Erf, scaled),
                               half);
  }
  Value square = arith::MulFOp::create(b, x, x);
  const double factor = -2 * 0.79788456080286535588;
  Value inner = LLVM::FMAOp::create(
      b, square, floatLike(b, x, factor * 0.044715), floatLike(b, x, factor));
  Value exponential =
      e.call(ScalarFunction::Exp, Value(arith::MulFOp::create(b, x, inner)));
  return arith::DivFOp::create(
      b, x, arith::AddFOp::create(b, floatLike(b, x, 1), exponential));
}

/// An f64 as an f32 of which a narrower float is made: what is inexact gets an
/// odd last bit, so that rounding it again is rounding once (Boldo and
/// Melquiond, Emulation of a FMA and correctly rounded sums, 2008).
static Value truncateToOdd(ImplicitLocOpBuilder &b, Value x) {
  Type i32 = b.getI32Type();
  Value near = arith::TruncFOp::create(b, b.getF32Type(), x);
  Value back = arith::ExtFOp::create(b, b.getF64Type(), near);
  Value bits = arith::BitcastOp::create(b, i32, near);
  auto compare = [&](arith::CmpFPredicate predicate, Value y, Value z) {
    return arith::ExtUIOp::create(b, i32,
                                  arith::CmpFOp::create(b, predicate, y, z));
  };
  // To the side of zero, then odd.
  Value above =
      compare(arith::CmpFPredicate::OGT, LLVM::FAbsOp::create(b, back),
              LLVM::FAbsOp::create(b, x));
  bits = arith::SubIOp::create(b, bits, above);
  bits = arith::OrIOp::create(b, bits,
                              compare(arith::CmpFPredicate::ONE, back, x));
  return arith::BitcastOp::create(b, b.getF32Type(), bits);
}

/// As `saturateNumber` of accel-rt/NumberFormat.h.
static Value saturate(ImplicitLocOpBuilder &b, Value x, Type type) {
  const rt::NumberFormat &format = getNumberFormat(type);
  if (!format.hasZero) {
    Value isZero = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, x,
                                         floatLike(b, x, 0));
    Value least = floatLike(b, x, rt::decodeNumber(format, 0));
    x = arith::SelectOp::create(b, isZero, least, x);
  }
  double largest = rt::decodeNumber(format, format.largest());
  for (double bound : {largest, -largest}) {
    Value limit =
        arith::ConstantOp::create(b, b.getFloatAttr(x.getType(), bound));
    Value beyond =
        bound > 0 ? lessThan(b, limit, x, false) : lessThan(b, x, limit, false);
    x = arith::SelectOp::create(b, beyond, limit, x);
  }
  return x;
}

/// Float to integer of a value out of range gives some integer, as ONNX leaves
/// it open.
static Value emitUnary(ElementBuilder &e, nn::CastOp op, Value x) {
  ImplicitLocOpBuilder &b = e.builder();
  Type from = elementType(op.getInput()), to = elementType(op.getResult());
  bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(to);
  if (to.isInteger(1)) {
    Value zero = zeroLike(b, x);
    if (fromFloat)
      return arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, x, zero);
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, x, zero);
  }
  Type target = to.isF64() ? Type(b.getF64Type())
                : toFloat  ? Type(b.getF32Type())
                           : Type(b.getIntegerType(to.getIntOrFloatBitWidth()));
  if (fromFloat && toFloat) {
    if (op.getSaturate())
      x = saturate(b, x, to);
    if (x.getType() == target)
      return x;
    if (to.isF64())
      return arith::ExtFOp::create(b, target, x);
    return to.isF32() ? Value(arith::TruncFOp::create(b, target, x))
                      : truncateToOdd(b, x);
  }
  if (fromFloat && to.getIntOrFloatBitWidth() < 8) // no such instructions
    return arith::TruncIOp::create(
        b, target, arith::FPToSIOp::create(b, b.getI32Type(), x));
  if (fromFloat)
    return to.isUnsignedInteger()
               ? Value(arith::FPToUIOp::create(b, target, x))
               : Value(arith::FPToSIOp::create(b, target, x));
  if (toFloat)
    return isUnsigned(from) ? Value(arith::UIToFPOp::create(b, target, x))
                            : Value(arith::SIToFPOp::create(b, target, x));
  unsigned fromWidth = from.getIntOrFloatBitWidth();
  unsigned toWidth = to.getIntOrFloatBitWidth();
  if (fromWidth == toWidth)
    return x;
  if (fromWidth > toWidth)
    return arith::TruncIOp::create(b, target, x);
  return isUnsigned(from) ? Value(arith::ExtUIOp::create(b, target, x))
                          : Value(arith::ExtSIOp::create(b, target, x));
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

static Value emitBinary(ElementBuilder &e, nn::AddOp, Value x, Value y) {
  ImplicitLocOpBuilder &b = e.builder();
  if (isFloat(x))
    return arith::AddFOp::create(b, x, y, kFlags);
  return arith::AddIOp::create(b, x, y);
}
static Value emitBinary(ElementBuilder &e, nn::SubOp, Value x, Value y) {
  ImplicitLocOpBuilder &b = e.builder();
  if (isFloat(x))
    return arith::SubFOp::create(b, x, y, kFlags);
  return arith::SubIOp::create(b, x, y);
}
static Value emitBinary(ElementBuilder &e, nn::MulOp, Value x, Value y) {
  ImplicitLocOpBuilder &b = e.builder();
  if (isFloat(x))
    return arith::MulFOp::create(b, x, y, kFlags);
  return arith::MulIOp::create(b, x, y);
}
static Value emitBinary(ElementBuilder &e, nn::AndOp, Value x, Value y) {
  ImplicitLocOpBuilder &b = e.builder();
  return arith::AndIOp::create(b, x, y);
}
static Value emitBinary(ElementBuilder &e, nn::OrOp, Value x, Value y) {
  ImplicitLocOpBuilder &b = e.builder();
  return arith::OrIOp::create(b, x, y);
}
static Value emitBinary(ElementBuilder &e, nn::MinOp op, Value x, Value y) {
  ImplicitLocOpBuilder &b = e.builder();
  if (isFloat(x))
    return arith::MinimumFOp::create(b, x, y);
  if (isUnsigned(elementType(op.getLhs())))
    return arith::MinUIOp::create(b, x, y);
  return arith::MinSIOp::create(b, x, y);
}
static Value emitBinary(ElementBuilder &e, nn::MaxOp op, Value x, Value y) {
  ImplicitLocOpBuilder &b = e.builder();
  if (isFloat(x))
    return arith::MaximumFOp::create(b, x, y);
  if (isUnsigned(elementType(op.getLhs())))
    return arith::MaxUIOp::create(b, x, y);
  return arith::MaxSIOp::create(b, x, y);
}

/// An integer divisor that the processor does not trap on. Dividing by 0 gives
/// the dividend; the least integer over -1 is itself.
static Value safeDivisor(ImplicitLocOpBuilder &b, Value y, bool isUnsigned,
                         Value x) {
  Type type = y.getType();
  Value zero = zeroLike(b, y);
  Value one = arith::ConstantOp::create(b, b.getIntegerAttr(type, 1));
  Value bad = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, y, zero);
  if (!isUnsigned) {
    unsigned width = type.getIntOrFloatBitWidth();
    Value least = arith::ConstantOp::create(
        b, b.getIntegerAttr(type, APInt::getSignedMinValue(width)));
    Value minusOne = arith::ConstantOp::create(b, b.getIntegerAttr(type, -1));
    Value overflows = arith::AndIOp::create(
        b, arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, least),
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, y, minusOne));
    bad = arith::OrIOp::create(b, bad, overflows);
  }
  return arith::SelectOp::create(b, bad, one, y);
}
static Value emitBinary(ElementBuilder &e, nn::DivOp op, Value x, Value y) {
  ImplicitLocOpBuilder &b = e.builder();
  if (isFloat(x))
    return arith::DivFOp::create(b, x, y, kFlags);
  bool without = isUnsigned(elementType(op.getLhs()));
  y = safeDivisor(b, y, without, x);
  if (without)
    return arith::DivUIOp::create(b, x, y);
  return arith::DivSIOp::create(b, x, y);
}
static Value emitBinary(ElementBuilder &e, nn::ModOp op, Value x, Value y) {
  ImplicitLocOpBuilder &b = e.builder();
  if (isFloat(x))
    return e.call(ScalarFunction::Fmod, {x, y});
  bool without = isUnsigned(elementType(op.getLhs()));
  Value divisor = safeDivisor(b, y, without, x);
  if (without)
    return arith::RemUIOp::create(b, x, divisor);
  Value rest = arith::RemSIOp::create(b, x, divisor);
  Value zero = zeroLike(b, x);
  Value differs = lessThan(b, arith::XOrIOp::create(b, rest, y), zero, false);
  Value nonzero =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, rest, zero);
  return arith::SelectOp::create(b, arith::AndIOp::create(b, differs, nonzero),
                                 arith::AddIOp::create(b, rest, y), rest);
}

/// Small constant exponents are products and roots; others the C library's pow.
static Value emitBinary(ElementBuilder &e, nn::PowOp op, Value x, Value y) {
  ImplicitLocOpBuilder &b = e.builder();
  DenseElementsAttr constant;
  Value exponent = op.getRhs();
  while (auto broadcast = exponent.getDefiningOp<nn::BroadcastOp>())
    exponent = broadcast.getInput();
  if (isFloat(x) && matchPattern(exponent, m_Constant(&constant)) &&
      constant.isSplat()) {
    APFloat value = constant.getSplatValue<APFloat>();
    bool inexact;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                  &inexact);
    double power = value.convertToDouble();
    if (power == 0.5)
      return e.call(ScalarFunction::Sqrt, x);
    if (power >= 1 && power <= 4 && power == std::floor(power)) {
      Value product = x;
      for (int i = 1; i < power; ++i)
        product = arith::MulFOp::create(b, product, x);
      return product;
    }
  }
  if (isFloat(x))
    return e.call(ScalarFunction::Pow, {x, y});
  bool without = isUnsigned(elementType(op.getLhs()));
  auto widen = [&](Value value) -> Value {
    if (without)
      return arith::UIToFPOp::create(b, b.getF64Type(), value);
    return arith::SIToFPOp::create(b, b.getF64Type(), value);
  };
  Value result = e.call(ScalarFunction::Pow, {widen(x), widen(y)});
  if (without)
    return arith::FPToUIOp::create(b, x.getType(), result);
  return arith::FPToSIOp::create(b, x.getType(), result);
}

static Value emitBinary(ElementBuilder &e, nn::CompareOp op, Value x, Value y) {
  ImplicitLocOpBuilder &b = e.builder();
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  bool without = isUnsigned(elementType(op.getLhs()));
  F floats = F::OEQ;
  I integers = I::eq;
  switch (op.getPredicate()) {
  case nn::ComparePredicate::eq:
    break;
  case nn::ComparePredicate::ne:
    floats = F::UNE, integers = I::ne;
    break;
  case nn::ComparePredicate::lt:
    floats = F::OLT, integers = without ? I::ult : I::slt;
    break;
  case nn::ComparePredicate::le:
    floats = F::OLE, integers = without ? I::ule : I::sle;
    break;
  case nn::ComparePredicate::gt:
    floats = F::OGT, integers = without ? I::ugt : I::sgt;
    break;
  case nn::ComparePredicate::ge:
    floats = F::OGE, integers = without ? I::uge : I::sge;
    break;
  }
  if (isFloat(x))
    return arith::CmpFOp::create(b, floats, x, y);
  return arith::CmpIOp::create(b, integers, x, y);
}

namespace {
template <typename Op>
struct UnaryElement
    : ElementSourceOpInterface::ExternalModel<UnaryElement<Op>, Op> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    Value x = e.element(op->getOperand(0), index);
    Value result = emitUnary(e, cast<Op>(op), x);
    // A cast is what the program rounds with; other ops stay wide in between.
    if constexpr (std::is_same_v<Op, nn::CastOp>)
      result = e.round(result, elementType(op->getResult(0)));
    return result;
  }
};

template <typename Op>
struct BinaryElement
    : ElementSourceOpInterface::ExternalModel<BinaryElement<Op>, Op> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    Value x = e.element(op->getOperand(0), index);
    Value y = e.element(op->getOperand(1), index);
    return emitBinary(e, cast<Op>(op), x, y);
  }
};

struct SelectElement
    : ElementSourceOpInterface::ExternalModel<SelectElement, nn::SelectOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    Value condition = e.element(op->getOperand(0), index);
    Value x = e.element(op->getOperand(1), index);
    Value y = e.element(op->getOperand(2), index);
    return arith::SelectOp::create(e.builder(), condition, x, y);
  }
};

template <typename Op>
using CodeOfOne = decltype(emitUnary(std::declval<ElementBuilder &>(),
                                     std::declval<Op>(), Value()));
template <typename Op>
using CodeOfTwo = decltype(emitBinary(std::declval<ElementBuilder &>(),
                                      std::declval<Op>(), Value(), Value()));
} // namespace

void element::attachElementwiseModels(MLIRContext *context) {
  nn::forEachElementwiseOp([&](auto tag) {
    using Op = typename decltype(tag)::type;
    if constexpr (llvm::is_detected<CodeOfOne, Op>::value)
      Op::template attachInterface<UnaryElement<Op>>(*context);
    else if constexpr (llvm::is_detected<CodeOfTwo, Op>::value)
      Op::template attachInterface<BinaryElement<Op>>(*context);
  });
  nn::SelectOp::attachInterface<SelectElement>(*context);
}
