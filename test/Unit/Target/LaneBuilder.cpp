// Computes by folding, and combines in halves.

#include "LaneBuilder.h"

#include "dialects/Interfaces/ElementSource.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::test;
using Values = ElementBuilder::Values;

static double toDouble(Attribute value) {
  return cast<FloatAttr>(value).getValueAsDouble();
}

/// Ops of the LLVM dialect have no folders, and that of truncations is of exact
/// ones.
TypedAttr LaneBuilder::foldByHand(Operation *op) {
  auto x = [&](unsigned number) {
    return toDouble(valueOf(op->getOperand(number)));
  };
  double result;
  if (isa<LLVM::FAbsOp>(op))
    result = std::abs(x(0));
  else if (isa<LLVM::FFloorOp>(op))
    result = std::floor(x(0));
  else if (isa<LLVM::RoundEvenOp>(op))
    result = std::nearbyint(x(0));
  else if (isa<arith::TruncFOp>(op))
    result = roundToType(x(0), op->getResult(0).getType());
  else if (isa<LLVM::FMAOp>(op))
    result = std::fma(x(0), x(1), x(2));
  else
    return nullptr;
  return b.getFloatAttr(op->getResult(0).getType(), result);
}

TypedAttr LaneBuilder::valueOf(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  TypedAttr result;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    result = constant.getValue();
  } else if (!(result = foldByHand(op))) {
    SmallVector<Attribute> operands;
    for (Value operand : op->getOperands())
      operands.push_back(valueOf(operand));
    SmallVector<OpFoldResult> results;
    if (failed(op->fold(operands, results)) || results.size() != 1)
      ADD_FAILURE() << op->getName().getStringRef().str() << " does not fold";
    else if (auto same = dyn_cast<Value>(results[0]))
      result = valueOf(same);
    else
      result = cast<TypedAttr>(cast<Attribute>(results[0]));
  }
  return known[value] = result;
}

double LaneBuilder::numberOf(Value value) {
  TypedAttr attribute = valueOf(value);
  if (isa<FloatAttr>(attribute))
    return toDouble(attribute);
  return static_cast<double>(integerOf(value));
}

int64_t LaneBuilder::integerOf(Value value) {
  APInt number = cast<IntegerAttr>(valueOf(value)).getValue();
  return number.getBitWidth() == 1 ? number.getZExtValue()
                                   : number.getSExtValue();
}

//===----------------------------------------------------------------------===//
// Elements and indices
//===----------------------------------------------------------------------===//

Value LaneBuilder::element(Value tensor, ArrayRef<Value> index) {
  auto found = memory.find(tensor);
  if (found == memory.end())
    return cast<ElementSourceOpInterface>(tensor.getDefiningOp())
        .emitElement(*this, index);
  const Tensor &contents = found->second;
  int64_t position = 0;
  for (auto [at, size] : llvm::zip_equal(index, contents.getShape())) {
    int64_t here = integerOf(at);
    EXPECT_GE(here, 0);
    EXPECT_LT(here, size);
    position = position * size + here;
  }
  Type type = getComputeType(contents.getElementType());
  if (contents.isFloat())
    return constant(b.getFloatAttr(type, contents.floats()[position]));
  return constant(b.getIntegerAttr(
      type, APInt(type.getIntOrFloatBitWidth(), contents.ints()[position],
                  /*isSigned=*/true, /*implicitTrunc=*/true)));
}

Type LaneBuilder::getComputeType(Type element) {
  if (element.isF64())
    return b.getF64Type();
  if (isa<FloatType>(element))
    return b.getF32Type();
  return b.getIntegerType(element.getIntOrFloatBitWidth());
}

Value LaneBuilder::round(Value value, Type element) {
  if (!isa<FloatType>(element))
    return value;
  return constant(
      b.getFloatAttr(value.getType(), roundToType(numberOf(value), element)));
}

Values LaneBuilder::once(const void *key, ArrayRef<Value> index,
                         function_ref<Values()> build) {
  std::vector<int64_t> at;
  for (Value value : index)
    at.push_back(integerOf(value));
  auto [found, isNew] = made.try_emplace({key, at});
  if (isNew) {
    Values values = build();
    made[{key, at}] = values;
    return values;
  }
  return found->second;
}

Value LaneBuilder::call(ScalarFunction function, ValueRange operands) {
  double x = numberOf(operands[0]), result = 0;
  switch (function) {
  case ScalarFunction::Exp:
    result = std::exp(x);
    break;
  case ScalarFunction::ExpOfNonPositive:
    EXPECT_FALSE(x > 0);
    result = std::exp(x);
    break;
  case ScalarFunction::Log:
    result = std::log(x);
    break;
  case ScalarFunction::Log1p:
    result = std::log1p(x);
    break;
  case ScalarFunction::Tanh:
    result = std::tanh(x);
    break;
  case ScalarFunction::Erf:
    result = std::erf(x);
    break;
  case ScalarFunction::Sigmoid:
    result = 1 / (1 + std::exp(-x));
    break;
  case ScalarFunction::Sqrt:
    result = std::sqrt(x);
    break;
  case ScalarFunction::Sin:
    result = std::sin(x);
    break;
  case ScalarFunction::Cos:
    result = std::cos(x);
    break;
  case ScalarFunction::Atan:
    result = std::atan(x);
    break;
  case ScalarFunction::Pow:
    result = std::pow(x, numberOf(operands[1]));
    break;
  case ScalarFunction::Fmod:
    result = std::fmod(x, numberOf(operands[1]));
    break;
  }
  return constant(b.getFloatAttr(operands[0].getType(), result));
}

Value LaneBuilder::constantIndex(int64_t value) {
  return constant(b.getI64IntegerAttr(value));
}

Value LaneBuilder::add(Value lhs, Value rhs) {
  return constantIndex(integerOf(lhs) + integerOf(rhs));
}

Value LaneBuilder::mul(Value lhs, int64_t rhs) {
  return constantIndex(integerOf(lhs) * rhs);
}

Value LaneBuilder::linearize(ArrayRef<Value> index, ArrayRef<int64_t> shape) {
  int64_t position = 0;
  for (auto [at, size] : llvm::zip_equal(index, shape))
    position = position * size + integerOf(at);
  return constantIndex(position);
}

Values LaneBuilder::delinearize(Value position, ArrayRef<int64_t> shape) {
  int64_t rest = integerOf(position);
  Values index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0; rest /= shape[dim])
    index[dim] = constantIndex(rest % shape[dim]);
  return index;
}

//===----------------------------------------------------------------------===//
// Elements combined
//===----------------------------------------------------------------------===//

Value LaneBuilder::combine(Combine kind, Value x, Value y) {
  bool isFloat = isa<FloatType>(x.getType());
  switch (kind) {
  case Combine::Sum:
    return isFloat ? Value(arith::AddFOp::create(b, x, y))
                   : Value(arith::AddIOp::create(b, x, y));
  case Combine::Product:
    return isFloat ? Value(arith::MulFOp::create(b, x, y))
                   : Value(arith::MulIOp::create(b, x, y));
  case Combine::Max:
    return isFloat ? Value(arith::MaximumFOp::create(b, x, y))
                   : Value(arith::MaxSIOp::create(b, x, y));
  case Combine::Min:
    return isFloat ? Value(arith::MinimumFOp::create(b, x, y))
                   : Value(arith::MinSIOp::create(b, x, y));
  case Combine::UnsignedMax:
    return arith::MaxUIOp::create(b, x, y);
  case Combine::UnsignedMin:
    return arith::MinUIOp::create(b, x, y);
  }
  llvm_unreachable("unknown combination");
}

Value LaneBuilder::reduce(Combine kind, Type type, ArrayRef<int64_t> shape,
                          function_ref<Value(ArrayRef<Value>)> term, bool) {
  ++reductions;
  Values terms;
  for (int64_t at = 0; at < ShapedType::getNumElements(shape); ++at)
    terms.push_back(term(delinearize(constantIndex(at), shape)));
  EXPECT_FALSE(terms.empty()) << "no test reduces nothing";
  for (Value each : terms)
    EXPECT_EQ(each.getType(), type);
  // Each lane of the lower half takes what one of the upper half has.
  while (terms.size() > 1) {
    size_t half = (terms.size() + 1) / 2;
    for (size_t lane = half; lane < terms.size(); ++lane)
      terms[lane - half] = combine(kind, terms[lane - half], terms[lane]);
    terms.resize(half);
  }
  return terms[0];
}

Value LaneBuilder::scan(const Scan &scan, Value at,
                        function_ref<Value(Value)> term) {
  int64_t here = integerOf(at);
  Value sum = constant(cast<TypedAttr>(b.getZeroAttr(scan.type)));
  for (int64_t place = 0; place < scan.size; ++place)
    if (place == here ? !scan.isExclusive : (place > here) == scan.isReverse)
      sum = combine(Combine::Sum, sum, term(constantIndex(place)));
  return sum;
}

std::pair<Value, Value>
LaneBuilder::choose(int64_t size, Type type,
                    function_ref<Candidate(Value)> candidate) {
  ++reductions;
  int64_t best = -1;
  Value order = constant(b.getIntegerAttr(
      type, APInt::getSignedMinValue(type.getIntOrFloatBitWidth())));
  // From the last one: what is asked for may come in any order.
  for (int64_t place = size; place-- > 0;) {
    Candidate found = candidate(constantIndex(place));
    if (integerOf(found.counts) &&
        (best < 0 || integerOf(found.order) >= integerOf(order))) {
      best = place;
      order = found.order;
    }
  }
  return {constantIndex(best), order};
}

std::pair<Value, Value>
LaneBuilder::filter(Value count, int64_t most,
                    function_ref<Value(Value)> getPlace,
                    function_ref<Value(Value)> isWanted) {
  Value places = scratch(b.getI64Type(), most);
  if (!places)
    return {};
  EXPECT_LE(integerOf(count), most);
  int64_t found = 0;
  for (int64_t number = 0; number < integerOf(count); ++number) {
    Value place = getPlace(constantIndex(number));
    if (integerOf(isWanted(place)))
      storeScratch(place, places, constantIndex(found++));
  }
  return {places, constantIndex(found)};
}

Values LaneBuilder::loop(Value begin, Value end, ValueRange initial,
                         function_ref<Values(Value, ValueRange)> body) {
  Values carried(initial);
  for (int64_t at = integerOf(begin); at < integerOf(end); ++at)
    carried = body(constantIndex(at), carried);
  return carried;
}

//===----------------------------------------------------------------------===//
// Scratch and refusals
//===----------------------------------------------------------------------===//

Value LaneBuilder::scratch(Type, int64_t elements) {
  if (!hasScratch)
    return {};
  rows.emplace_back(elements);
  return constantIndex(static_cast<int64_t>(rows.size()) - 1);
}

Value LaneBuilder::loadScratch(Value scratch, Value index, Type type) {
  TypedAttr found = rows[integerOf(scratch)][integerOf(index)];
  EXPECT_TRUE(found) << "nothing was stored here";
  EXPECT_EQ(found.getType(), type);
  return constant(found);
}

void LaneBuilder::storeScratch(Value value, Value scratch, Value index) {
  std::vector<TypedAttr> &row = rows[integerOf(scratch)];
  ASSERT_LT(integerOf(index), static_cast<int64_t>(row.size()));
  row[integerOf(index)] = valueOf(value);
}

void LaneBuilder::refuse(Value bad, Value position, Value value, int64_t least,
                         int64_t end, bool) {
  if (!integerOf(bad))
    return;
  refused.push_back(integerOf(position));
  EXPECT_TRUE(integerOf(value) < least || integerOf(value) >= end);
}
