// The meaning of the elementwise ops: one function of numbers each. Those of
// one float say it in their definition (NNElementwise.td); here is the rest.

#include "Group.h"
#include "dialects/NN/DynamicMap.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

//===----------------------------------------------------------------------===//
// The functions. Integers wrap around: they are computed without sign, since
// signed overflow has no meaning in C++.
//===----------------------------------------------------------------------===//

namespace {
double negate(double x) { return -x; }
int64_t negateInt(int64_t x) { return -static_cast<uint64_t>(x); }
double absolute(double x) { return std::fabs(x); }
int64_t absoluteInt(int64_t x) { return x < 0 ? negateInt(x) : x; }
int64_t itself(int64_t x) { return x; }
int64_t negation(int64_t x) { return !x; }

double add(double x, double y) { return x + y; }
double subtract(double x, double y) { return x - y; }
double multiply(double x, double y) { return x * y; }
double divide(double x, double y) { return x / y; }
double modulo(double x, double y) { return std::fmod(x, y); }
double power(double x, double y) { return std::pow(x, y); }
double smaller(double x, double y) { return x < y || std::isnan(x) ? x : y; }
double larger(double x, double y) { return x > y || std::isnan(x) ? x : y; }

int64_t addInt(int64_t x, int64_t y) {
  return static_cast<uint64_t>(x) + static_cast<uint64_t>(y);
}
int64_t subtractInt(int64_t x, int64_t y) {
  return static_cast<uint64_t>(x) - static_cast<uint64_t>(y);
}
int64_t multiplyInt(int64_t x, int64_t y) {
  return static_cast<uint64_t>(x) * static_cast<uint64_t>(y);
}
int64_t divideInt(int64_t x, int64_t y) {
  return y == -1 ? negateInt(x) : x / y; // the smallest integer / -1 traps
}
int64_t moduloInt(int64_t x, int64_t y) {
  if (y == -1)
    return 0;
  int64_t rest = x % y;
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
/// Exact and wrapping; a negative exponent rounds 1 / x^n towards zero.
int64_t powerInt(int64_t x, int64_t y) {
  if (y < 0)
    return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
  int64_t result = 1;
  for (; y; y >>= 1, x = multiplyInt(x, x))
    if (y & 1)
      result = multiplyInt(result, x);
  return result;
}
/// The same without sign, where it makes a difference.
uint64_t divideUnsigned(uint64_t x, uint64_t y) { return x / y; }
uint64_t moduloUnsigned(uint64_t x, uint64_t y) { return x % y; }
uint64_t powerUnsigned(uint64_t x, uint64_t y) {
  uint64_t result = 1;
  for (; y; y >>= 1, x *= x)
    if (y & 1)
      result *= x;
  return result;
}
uint64_t smallerUnsigned(uint64_t x, uint64_t y) { return std::min(x, y); }
uint64_t largerUnsigned(uint64_t x, uint64_t y) { return std::max(x, y); }
int64_t smallerInt(int64_t x, int64_t y) { return std::min(x, y); }
int64_t largerInt(int64_t x, int64_t y) { return std::max(x, y); }
int64_t conjunction(int64_t x, int64_t y) { return x & y; }
int64_t disjunction(int64_t x, int64_t y) { return x | y; }
bool isZero(int64_t x) { return x == 0; }

//===----------------------------------------------------------------------===//
// The models
//===----------------------------------------------------------------------===//

template <typename OpT, double (*Float)(double),
          int64_t (*Int)(int64_t) = nullptr, int64_t (*Unsigned)(int64_t) = Int>
struct Unary : EvaluateModel<Unary<OpT, Float, Int, Unsigned>, OpT> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    Tensor result = makeResult(op);
    if constexpr (Float != nullptr)
      if (result.isFloat())
        llvm::transform(operands[0].floats(), result.mutableFloats().begin(),
                        Float);
    if constexpr (Int != nullptr)
      if (!result.isFloat()) {
        Type type = result.getElementType();
        auto *function = type.isUnsignedInteger() ? Unsigned : Int;
        llvm::transform(
            operands[0].ints(), result.mutableInts().begin(),
            [&](int64_t x) { return wrapToType(function(x), type); });
      }
    results.push_back(std::move(result));
    return success();
  }
};

/// Whether the definition of an op says what it computes.
template <typename Op> using ComputeOf = decltype(Op::compute(0.0));

template <typename OpT, double (*Float)(double, double),
          int64_t (*Int)(int64_t, int64_t),
          uint64_t (*Unsigned)(uint64_t, uint64_t) = nullptr,
          bool Divides = false>
struct Binary : EvaluateModel<Binary<OpT, Float, Int, Unsigned, Divides>, OpT> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    Tensor result = makeResult(op);
    if constexpr (Float != nullptr)
      if (result.isFloat()) {
        ArrayRef<double> x = operands[0].floats(), y = operands[1].floats();
        MutableArrayRef<double> z = result.mutableFloats();
        for (size_t i = 0; i < z.size(); ++i)
          z[i] = Float(x[i], y[i]);
      }
    if (!result.isFloat()) {
      ArrayRef<int64_t> x = operands[0].ints(), y = operands[1].ints();
      MutableArrayRef<int64_t> z = result.mutableInts();
      if (Divides && llvm::any_of(y, isZero))
        return op->emitOpError() << "expected no division by 0, found a "
                                    "divisor of 0";
      Type type = result.getElementType();
      bool isUnsigned = Unsigned != nullptr && type.isUnsignedInteger();
      for (size_t i = 0; i < z.size(); ++i)
        z[i] =
            wrapToType(isUnsigned ? static_cast<int64_t>(Unsigned(x[i], y[i]))
                                  : Int(x[i], y[i]),
                       type);
    }
    results.push_back(std::move(result));
    return success();
  }
};

/// x/2 (1 + erf(x/√2)), or its approximation by tanh.
struct Gelu : EvaluateModel<Gelu, nn::GeluOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    Tensor result = makeResult(op);
    bool exact = cast<nn::GeluOp>(op).getKind() == nn::GeluKind::erf;
    llvm::transform(
        operands[0].floats(), result.mutableFloats().begin(), [&](double x) {
          double bent =
              exact
                  ? std::erf(x / std::sqrt(2.0))
                  : std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
          return x / 2 * (1 + bent);
        });
    results.push_back(std::move(result));
    return success();
  }
};

struct IsNan : EvaluateModel<IsNan, nn::IsNanOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    Tensor result = makeResult(op);
    llvm::transform(operands[0].floats(), result.mutableInts().begin(),
                    [](double x) { return std::isnan(x); });
    results.push_back(std::move(result));
    return success();
  }
};

struct DynamicEncode : EvaluateModel<DynamicEncode, nn::DynamicEncodeOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    const auto &bounds =
        nn::getDynamicBounds(cast<nn::DynamicEncodeOp>(op).getIsSigned());
    Tensor result = makeResult(op);
    llvm::transform(operands[0].floats(), result.mutableInts().begin(),
                    [&](double x) {
                      return llvm::lower_bound(bounds, x) - bounds.begin();
                    });
    results.push_back(std::move(result));
    return success();
  }
};

struct DynamicDecode : EvaluateModel<DynamicDecode, nn::DynamicDecodeOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    const auto &map =
        nn::getDynamicMap(cast<nn::DynamicDecodeOp>(op).getIsSigned());
    Tensor result = makeResult(op);
    llvm::transform(operands[0].ints(), result.mutableFloats().begin(),
                    [&](int64_t code) { return double(map[code]); });
    results.push_back(std::move(result));
    return success();
  }
};

template <typename T> bool holds(nn::ComparePredicate predicate, T x, T y) {
  switch (predicate) {
  case nn::ComparePredicate::eq:
    return x == y;
  case nn::ComparePredicate::ne:
    return x != y;
  case nn::ComparePredicate::lt:
    return x < y;
  case nn::ComparePredicate::le:
    return x <= y;
  case nn::ComparePredicate::gt:
    return x > y;
  case nn::ComparePredicate::ge:
    return x >= y;
  }
  llvm_unreachable("a predicate without meaning");
}

struct Compare : EvaluateModel<Compare, nn::CompareOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    Tensor result = makeResult(op);
    nn::ComparePredicate predicate = cast<nn::CompareOp>(op).getPredicate();
    MutableArrayRef<int64_t> z = result.mutableInts();
    auto compare = [&](auto x, auto y) {
      for (size_t i = 0; i < z.size(); ++i)
        z[i] = holds(predicate, x[i], y[i]);
    };
    if (operands[0].isFloat())
      compare(operands[0].floats(), operands[1].floats());
    else if (operands[0].getElementType().isUnsignedInteger())
      compare(operands[0].unsignedInts(), operands[1].unsignedInts());
    else
      compare(operands[0].ints(), operands[1].ints());
    results.push_back(std::move(result));
    return success();
  }
};

struct Select : EvaluateModel<Select, nn::SelectOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    Tensor result = operands[1];
    ArrayRef<int64_t> condition = operands[0].ints();
    withElements(operands[2], result, [&](auto otherwise, auto target) {
      for (size_t i = 0; i < target.size(); ++i)
        if (!condition[i])
          target[i] = otherwise[i];
    });
    results.push_back(std::move(result));
    return success();
  }
};

/// Towards zero; what an integer type cannot hold becomes its nearest bound,
/// and NaN 0 (C++ leaves both open). One of less than a byte has the low bits
/// of what an i32 holds.
int64_t truncateToInt(double value, Type type) {
  if (std::isnan(value))
    return 0;
  if (type.isInteger(1))
    return value != 0;
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits < 8)
    return wrapToType(
        truncateToInt(value, IntegerType::get(type.getContext(), 32)), type);
  bool isUnsigned = type.isUnsignedInteger();
  double bound = std::ldexp(1.0, isUnsigned ? bits : bits - 1);
  value = std::trunc(value);
  if (value >= bound)
    return isUnsigned ? llvm::maxUIntN(bits) : llvm::maxIntN(bits);
  if (value < (isUnsigned ? 0.0 : -bound))
    return isUnsigned ? 0 : llvm::minIntN(bits);
  return isUnsigned ? static_cast<int64_t>(static_cast<uint64_t>(value))
                    : static_cast<int64_t>(value);
}

struct Bitcast : EvaluateModel<Bitcast, nn::BitcastOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    const Tensor &input = operands[0];
    std::vector<char> bytes(input.getNumElements() * input.getElementBytes());
    input.toBytes(bytes);
    results.push_back(Tensor::fromBytes(
        cast<RankedTensorType>(op->getResult(0).getType()), bytes));
    return success();
  }
};

struct StopGradient : EvaluateModel<StopGradient, nn::StopGradientOp> {
  LogicalResult evaluate(Operation *, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    results.push_back(operands[0]);
    return success();
  }
};

/// Between floats rounding to the new type is evaluateOp's.
struct Cast : EvaluateModel<Cast, nn::CastOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    const Tensor &input = operands[0];
    Tensor result = makeResult(op);
    Type type = result.getElementType();
    if (input.isFloat() && result.isFloat()) {
      const rt::NumberFormat &format = getNumberFormat(type);
      bool saturates = cast<nn::CastOp>(op).getSaturate();
      llvm::transform(input.floats(), result.mutableFloats().begin(),
                      [&](double x) {
                        return saturates ? rt::saturateNumber(format, x) : x;
                      });
    } else if (input.isFloat())
      llvm::transform(input.floats(), result.mutableInts().begin(),
                      [&](double x) { return truncateToInt(x, type); });
    else if (result.isFloat())
      for (auto [index, number] : llvm::enumerate(result.mutableFloats()))
        number = input.asDouble(index);
    else
      llvm::transform(input.ints(), result.mutableInts().begin(),
                      [&](int64_t x) {
                        return type.isInteger(1) ? x != 0 : wrapToType(x, type);
                      });
    results.push_back(std::move(result));
    return success();
  }
};
} // namespace

void evaluate::attachElementwiseModels(MLIRContext *context) {
  using namespace nn;
  forEachElementwiseOp([&](auto tag) {
    using Op = typename decltype(tag)::type;
    if constexpr (llvm::is_detected<ComputeOf, Op>::value)
      Op::template attachInterface<Unary<Op, Op::compute>>(*context);
  });
#define UNARY(OP, ...) OP::attachInterface<Unary<OP, __VA_ARGS__>>(*context)
#define BINARY(OP, ...) OP::attachInterface<Binary<OP, __VA_ARGS__>>(*context)
  UNARY(NegOp, negate, negateInt);
  UNARY(AbsOp, absolute, absoluteInt, itself);
  UNARY(NotOp, nullptr, negation);
  BINARY(AddOp, add, addInt);
  BINARY(SubOp, subtract, subtractInt);
  BINARY(MulOp, multiply, multiplyInt);
  BINARY(DivOp, divide, divideInt, divideUnsigned, true);
  BINARY(ModOp, modulo, moduloInt, moduloUnsigned, true);
  BINARY(PowOp, power, powerInt, powerUnsigned);
  BINARY(MinOp, smaller, smallerInt, smallerUnsigned);
  BINARY(MaxOp, larger, largerInt, largerUnsigned);
  BINARY(AndOp, nullptr, conjunction);
  BINARY(OrOp, nullptr, disjunction);
#undef UNARY
#undef BINARY
  GeluOp::attachInterface<Gelu>(*context);
  IsNanOp::attachInterface<IsNan>(*context);
  DynamicEncodeOp::attachInterface<DynamicEncode>(*context);
  DynamicDecodeOp::attachInterface<DynamicDecode>(*context);
  CompareOp::attachInterface<Compare>(*context);
  SelectOp::attachInterface<Select>(*context);
  CastOp::attachInterface<Cast>(*context);
  BitcastOp::attachInterface<Bitcast>(*context);
  StopGradientOp::attachInterface<StopGradient>(*context);
}
