// As `widenNumber` and `narrowNumber` of accel-rt/NumberFormat.h do it.

#include "NarrowNumbers.h"

#include "dialects/Tensor/Tensor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace accel;

namespace {
/// Operations on i32.
struct Bits {
  ImplicitLocOpBuilder &b;

  Value number(uint32_t value) const {
    return arith::ConstantIntOp::create(b, int64_t(int32_t(value)), 32);
  }
  Value of(Value x) const {
    return arith::BitcastOp::create(b, b.getI32Type(), x);
  }
  Value toFloat(Value x) const {
    return arith::BitcastOp::create(b, b.getF32Type(), x);
  }
  Value andOf(Value x, uint32_t y) const {
    return arith::AndIOp::create(b, x, number(y));
  }
  Value orOf(Value x, Value y) const { return arith::OrIOp::create(b, x, y); }
  Value add(Value x, Value y) const { return arith::AddIOp::create(b, x, y); }
  Value add(Value x, uint32_t y) const { return add(x, number(y)); }
  Value left(Value x, int by) const {
    return arith::ShLIOp::create(b, x, number(uint32_t(by)));
  }
  Value right(Value x, int by) const {
    return arith::ShRUIOp::create(b, x, number(uint32_t(by)));
  }
  Value isAbove(Value x, uint32_t y) const { return isAbove(x, number(y)); }
  Value isAbove(Value x, Value y) const {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, x, y);
  }
  Value isEqual(Value x, uint32_t y) const {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, number(y));
  }
  Value select(Value condition, Value x, Value y) const {
    return arith::SelectOp::create(b, condition, x, y);
  }
};
} // namespace

Type accel::getNarrowStorage(ImplicitLocOpBuilder &b, Type element) {
  // bf16, too, is converted with integers: not every CPU has instructions.
  // A number of less than eight bits takes a byte, as `getElementBytes` counts
  // it.
  return element.isF16()
             ? element
             : b.getIntegerType(getNumberFormat(element).bytes() * 8);
}

Value accel::emitWiden(ImplicitLocOpBuilder &b, Value stored, Type element) {
  if (element.isF16())
    return arith::ExtFOp::create(b, b.getF32Type(), stored);
  const rt::NumberFormat &format = getNumberFormat(element);
  const int shift = 23 - format.fractionBits;
  Bits bits{b};
  Value code = arith::ExtUIOp::create(b, b.getI32Type(), stored);
  if (!format.hasZero) // powers of two, of which f32 has the least subnormal
    return bits.toFloat(bits.select(
        bits.isAbove(code, uint32_t(format.largest())), bits.number(0x7FC00000),
        bits.select(bits.isAbove(code, 0), bits.left(code, shift),
                    bits.number(1u << (shift - 1)))));
  if (format.exponentBits == 8)
    return bits.toFloat(bits.left(code, shift));
  Value magnitude = bits.andOf(code, uint32_t(format.allOnes()));
  Value sign = bits.left(bits.andOf(code, uint32_t(format.signBit())),
                         31 - format.magnitudeBits());
  // The exponents differ by a constant, subnormals' too.
  Value scale = arith::ConstantOp::create(
      b, b.getF32FloatAttr(std::ldexp(1.0f, 127 - format.bias)));
  Value wide = bits.of(arith::MulFOp::create(
      b, bits.toFloat(bits.left(magnitude, shift)), scale));
  // NaN, and infinity, which is the first code of its exponent.
  Value top =
      format.top == rt::NumberFormat::Top::InfinityAndNaN
          ? bits.add(bits.left(magnitude, shift),
                     0x7F800000 - (uint32_t(format.infinity()) << shift))
          : bits.number(0x7FC00000);
  wide = bits.select(bits.isAbove(magnitude, uint32_t(format.largest())), top,
                     wide);
  Value signedWide = bits.orOf(wide, sign);
  if (format.top == rt::NumberFormat::Top::MinusZero)
    signedWide = bits.select(bits.isEqual(code, uint32_t(format.nan())),
                             bits.number(0x7FC00000), signedWide);
  return bits.toFloat(signedWide);
}

Value accel::emitNarrow(ImplicitLocOpBuilder &b, Value value, Type element) {
  if (element.isF16())
    return arith::TruncFOp::create(b, b.getF16Type(), value);
  const rt::NumberFormat &format = getNumberFormat(element);
  const int shift = 23 - format.fractionBits;
  Bits bits{b};
  Type storage = getNarrowStorage(b, element);
  Value all = bits.of(value);
  auto nearest = [&](Value x) {
    Value odd = bits.andOf(bits.right(x, shift), 1);
    return bits.right(bits.add(bits.add(x, odd), (1u << (shift - 1)) - 1),
                      shift);
  };
  if (!format.hasZero) {
    // A tie goes to the larger power. What is below the least one of normal
    // numbers is 2^-127, or nearer to 2^-126; zero and negatives are beyond.
    Value code =
        bits.select(bits.isAbove(all, 0x7FFFFF),
                    bits.right(bits.add(all, 1u << (shift - 1)), shift),
                    bits.right(bits.add(all, 1u << (shift - 2)), shift));
    Value isNumber = bits.isAbove(bits.number(0x7F800000), all);
    isNumber = arith::AndIOp::create(b, isNumber, bits.isAbove(all, 0));
    return arith::TruncIOp::create(
        b, storage,
        bits.select(isNumber, code, bits.number(uint32_t(format.nan()))));
  }
  if (format.exponentBits == 8) {
    // The sign takes part, and what is rounded up past the largest is infinity.
    Value nan =
        arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
    Value quiet = bits.right(bits.orOf(all, bits.number(0x400000)), shift);
    return arith::TruncIOp::create(b, storage,
                                   bits.select(nan, quiet, nearest(all)));
  }
  Value magnitude = bits.andOf(all, 0x7FFFFFFF);
  Value sign = bits.left(bits.right(all, 31), format.magnitudeBits());
  Value normal =
      bits.add(nearest(magnitude),
               uint32_t(-((127 - format.bias) << format.fractionBits)));
  // Adding a number whose unit is the least one rounds to it.
  uint32_t unit = uint32_t(format.smallestExponent() + 23 + 127) << 23;
  Value small =
      bits.add(bits.of(arith::AddFOp::create(b, bits.toFloat(magnitude),
                                             bits.toFloat(bits.number(unit)))),
               -unit);
  Value code = bits.select(
      bits.isAbove(magnitude, (uint32_t(128 - format.bias) << 23) - 1), normal,
      small);
  code = bits.select(bits.isAbove(code, uint32_t(format.largest())),
                     bits.number(uint32_t(format.beyond())), code);
  code = bits.select(bits.isAbove(magnitude, 0x7F800000),
                     bits.number(uint32_t(format.nan())), code);
  Value signedCode = bits.orOf(code, sign);
  if (format.top == rt::NumberFormat::Top::MinusZero)
    signedCode = bits.select(bits.isEqual(code, 0), bits.number(0), signedCode);
  return arith::TruncIOp::create(b, storage, signedCode);
}
