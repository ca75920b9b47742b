// Polynomials and bit tricks. None of the operations here may be reassociated:
// they carry no fast-math flags.

#include "ScalarMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace accel;

Value accel::emitFloat(ImplicitLocOpBuilder &b, Value like, double value) {
  return arith::ConstantOp::create(b, b.getFloatAttr(like.getType(), value));
}

Value accel::emitFma(ImplicitLocOpBuilder &b, Value x, Value y, Value z) {
  return LLVM::FMAOp::create(b, x, y, z);
}

Value accel::emitSqrt(ImplicitLocOpBuilder &b, Value x) {
  return LLVM::SqrtOp::create(b, x);
}

static Value integer(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}

static Value less(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y);
}

static Value select(ImplicitLocOpBuilder &b, Value condition, Value x,
                    Value y) {
  return arith::SelectOp::create(b, condition, x, y);
}

static Value bits(ImplicitLocOpBuilder &b, Value x) {
  return arith::BitcastOp::create(b, b.getI32Type(), x);
}

static Value fromBits(ImplicitLocOpBuilder &b, Value x) {
  return arith::BitcastOp::create(b, b.getF32Type(), x);
}

/// Σ coefficients[i] · x^(n-1-i): highest power first.
static Value polynomial(ImplicitLocOpBuilder &b, Value x,
                        ArrayRef<double> coefficients) {
  Value sum = emitFloat(b, x, coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = emitFma(b, sum, x, emitFloat(b, x, coefficient));
  return sum;
}

Value accel::emitLibraryCall(ImplicitLocOpBuilder &b, StringRef name,
                             ValueRange operands) {
  Type type = operands.front().getType();
  std::string symbol = name.str() + (type.isF32() ? "f" : "");
  Operation *module = b.getInsertionBlock()->getParentOp();
  while (!isa<ModuleOp>(module))
    module = module->getParentOp();
  auto function = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      module, b.getStringAttr(symbol));
  if (!function) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(cast<ModuleOp>(module).getBody());
    SmallVector<Type> types(operands.size(), type);
    function = func::FuncOp::create(b, symbol, b.getFunctionType(types, type));
    function.setPrivate();
  }
  return func::CallOp::create(b, function, operands).getResult(0);
}

// 2^n · p(r) with x = n ln 2 + r, |r| <= ln 2 / 2. Adding 1.5 · 2^23 rounds x /
// ln 2 to an integer and leaves it in the low bits, so that no conversion to
// integer meets a NaN. The polynomial is the Cephes library's (S. Moshier,
// expf). 2^n is a factor where it has a number, for x <= 0; elsewhere n is
// added to the bits of the polynomial, which holds for all normal results, and
// what the bits are otherwise does not matter, since a selection replaces them.
Value accel::emitExp(ImplicitLocOpBuilder &b, Value x, bool nonPositive) {
  if (!x.getType().isF32())
    return emitLibraryCall(b, "exp", x);
  Value shift = emitFloat(b, x, 12582912.0);
  Value shifted = emitFma(b, x, emitFloat(b, x, 1.44269504088896341), shift);
  Value n = arith::SubFOp::create(b, shifted, shift);
  Value r = emitFma(b, n, emitFloat(b, x, -0.693145751953125), x);
  r = emitFma(b, n, emitFloat(b, x, -1.42860682030941723e-6), r);
  Value p =
      polynomial(b, r,
                 {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3,
                  4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1.0, 1.0});
  Value y;
  if (nonPositive) {
    Value exponent =
        arith::AddIOp::create(b, bits(b, shifted), integer(b, 127));
    exponent = arith::ShLIOp::create(b, exponent, integer(b, 23));
    y = arith::MulFOp::create(b, p, fromBits(b, exponent));
  } else {
    Value exponent = arith::ShLIOp::create(b, bits(b, shifted), integer(b, 23));
    y = fromBits(b, arith::AddIOp::create(b, bits(b, p), exponent));
    // Above the logarithm of the largest number: infinity, or NaN of NaN.
    Value high = emitFloat(b, x, 88.72283935546875);
    Value within = arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, x, high);
    Value infinity = emitFloat(b, x, std::numeric_limits<double>::infinity());
    y = select(b, within, y, arith::AddFOp::create(b, x, infinity));
  }
  // The logarithm of the smallest normal number.
  Value low = emitFloat(b, x, -87.33654022216796875);
  return select(b, less(b, x, low), emitFloat(b, x, 0), y);
}

// x = 2^e · m with m in [√½, √2); log m by the polynomial of the Cephes library
// (S. Moshier, logf).
Value accel::emitLog(ImplicitLocOpBuilder &b, Value x) {
  if (!x.getType().isF32())
    return emitLibraryCall(b, "log", x);
  Value smallest = emitFloat(b, x, 1.17549435e-38);
  Value subnormal = less(b, x, smallest);
  Value scaled = select(
      b, subnormal, arith::MulFOp::create(b, x, emitFloat(b, x, 8388608.0)), x);
  // √½ has the bits 0x3f3504f3: subtracting them leaves e in the upper bits.
  Value moved =
      arith::SubIOp::create(b, bits(b, scaled), integer(b, 0x3f3504f3));
  Value e = arith::ShRSIOp::create(b, moved, integer(b, 23));
  Value mantissa = arith::SubIOp::create(
      b, bits(b, scaled), arith::ShLIOp::create(b, e, integer(b, 23)));
  Value m = arith::SubFOp::create(b, fromBits(b, mantissa), emitFloat(b, x, 1));
  e = arith::SIToFPOp::create(b, b.getF32Type(), e);
  e = select(b, subnormal, arith::SubFOp::create(b, e, emitFloat(b, x, 23)), e);
  Value z = arith::MulFOp::create(b, m, m);
  Value p = polynomial(b, m,
                       {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1,
                        -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
                        2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  Value y = arith::MulFOp::create(b, arith::MulFOp::create(b, m, z), p);
  y = emitFma(b, e, emitFloat(b, x, -2.12194440e-4), y);
  y = emitFma(b, z, emitFloat(b, x, -0.5), y);
  y = arith::AddFOp::create(b, m, y);
  y = emitFma(b, e, emitFloat(b, x, 0.693359375), y);
  // 0, negative numbers, infinity and NaN.
  double infinity = std::numeric_limits<double>::infinity();
  Value zero = emitFloat(b, x, 0);
  Value isZero = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, x, zero);
  y = select(b, isZero, emitFloat(b, x, -infinity), y);
  y = select(b, less(b, x, zero), emitFloat(b, x, std::nan("")), y);
  Value finite = less(b, x, emitFloat(b, x, infinity));
  return select(b, finite, y, x);
}

// log(1 + x) of the rounded sum u, and to first order what rounding lost:
// (x - (u - 1)) / u. Where that is no number (u is 0 or infinite) nothing was.
Value accel::emitLog1p(ImplicitLocOpBuilder &b, Value x) {
  if (!x.getType().isF32())
    return emitLibraryCall(b, "log1p", x);
  Value one = emitFloat(b, x, 1);
  Value u = arith::AddFOp::create(b, x, one);
  Value kept = arith::SubFOp::create(b, u, one);
  Value rest = arith::DivFOp::create(b, arith::SubFOp::create(b, x, kept), u);
  Value known = less(b, LLVM::FAbsOp::create(b, rest), one);
  rest = select(b, known, rest, emitFloat(b, x, 0));
  return arith::AddFOp::create(b, emitLog(b, u), rest);
}

// 1 - 2 / (exp(2|x|) + 1), which is 1 exactly where tanh rounds to it; near 0,
// where that cancels, the polynomial of the Cephes library (S. Moshier, tanhf).
Value accel::emitTanh(ImplicitLocOpBuilder &b, Value x) {
  if (!x.getType().isF32())
    return emitLibraryCall(b, "tanh", x);
  Value t = LLVM::FAbsOp::create(b, x), one = emitFloat(b, x, 1);
  Value e = emitExp(b, arith::AddFOp::create(b, t, t));
  Value rest = arith::DivFOp::create(b, emitFloat(b, x, 2),
                                     arith::AddFOp::create(b, e, one));
  Value far = arith::SubFOp::create(b, one, rest);
  Value z = arith::MulFOp::create(b, x, x);
  Value p = polynomial(b, z,
                       {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                        1.33314422036e-1, -3.33332819422e-1});
  Value near = emitFma(b, arith::MulFOp::create(b, p, z), t, t);
  Value isNear = less(b, t, emitFloat(b, x, 0.625));
  return LLVM::CopySignOp::create(b, select(b, isNear, near, far), x);
}

// Two minimax polynomials, the outer one in the exponent of exp
// (N. Juffa, "A fast and accurate erff", NVIDIA developer forum 2017).
Value accel::emitErf(ImplicitLocOpBuilder &b, Value x) {
  if (!x.getType().isF32())
    return emitLibraryCall(b, "erf", x);
  Value t = LLVM::FAbsOp::create(b, x);
  Value s = arith::MulFOp::create(b, x, x);
  // Beyond 4 the result is 1 in f32, and the polynomial would meet infinities.
  Value bound = emitFloat(b, x, 4.0);
  Value clamped = select(b, less(b, bound, t), bound, t);
  Value square = arith::MulFOp::create(b, clamped, clamped);
  Value r = emitFma(b, emitFloat(b, x, -1.72853470e-5), clamped,
                    emitFloat(b, x, 3.83197126e-4));
  Value u = emitFma(b, emitFloat(b, x, -3.88396438e-3), clamped,
                    emitFloat(b, x, 2.42546219e-2));
  r = emitFma(b, r, square, u);
  r = emitFma(b, r, clamped, emitFloat(b, x, -1.06777877e-1));
  r = emitFma(b, r, clamped, emitFloat(b, x, -6.34846687e-1));
  r = emitFma(b, r, clamped, emitFloat(b, x, -1.28717512e-1));
  r = emitFma(b, r, clamped, arith::NegFOp::create(b, clamped));
  Value outer = arith::SubFOp::create(b, emitFloat(b, x, 1), emitExp(b, r));
  outer = LLVM::CopySignOp::create(b, outer, x);
  Value p = polynomial(b, s,
                       {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2,
                        1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  Value inner = emitFma(b, p, x, x);
  Value far = less(b, emitFloat(b, x, 0.927734375), t);
  return select(b, far, outer, inner);
}

Value accel::emitSigmoid(ImplicitLocOpBuilder &b, Value x) {
  Value one = emitFloat(b, x, 1);
  Value e = emitExp(b, arith::NegFOp::create(b, x));
  return arith::DivFOp::create(b, one, arith::AddFOp::create(b, one, e));
}
