// How a core combines the elements of a row: in loops that carry what there is
// so far. Sums may be reassociated, so that LLVM keeps several partial ones in
// vectors.

#include "RowEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace accel;
using Values = RowEmitter::Values;

static constexpr arith::FastMathFlags kReorder =
    arith::FastMathFlags::reassoc | arith::FastMathFlags::contract |
    arith::FastMathFlags::nsz;

/// What combines with any x to x.
static Value emitNeutral(ImplicitLocOpBuilder &b, Combine kind, Type type) {
  if (isa<FloatType>(type)) {
    double infinity = std::numeric_limits<double>::infinity();
    double value = kind == Combine::Max       ? -infinity
                   : kind == Combine::Min     ? infinity
                   : kind == Combine::Product ? 1
                                              : 0;
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  }
  unsigned width = type.getIntOrFloatBitWidth();
  APInt value = APInt::getZero(width);
  if (kind == Combine::Max)
    value = APInt::getSignedMinValue(width);
  else if (kind == Combine::Min)
    value = APInt::getSignedMaxValue(width);
  else if (kind == Combine::UnsignedMin)
    value = APInt::getMaxValue(width);
  else if (kind == Combine::Product)
    value = APInt(width, 1);
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
}

static Value emitCombine(ImplicitLocOpBuilder &b, Combine kind, Value x,
                         Value y) {
  bool isFloat = isa<FloatType>(x.getType());
  switch (kind) {
  case Combine::Sum:
    return isFloat ? Value(arith::AddFOp::create(b, x, y, kReorder))
                   : Value(arith::AddIOp::create(b, x, y));
  case Combine::Product:
    return isFloat ? Value(arith::MulFOp::create(b, x, y, kReorder))
                   : Value(arith::MulIOp::create(b, x, y));
  case Combine::Max:
    return isFloat ? Value(arith::MaximumFOp::create(b, x, y,
                                                     arith::FastMathFlags::nsz))
                   : Value(arith::MaxSIOp::create(b, x, y));
  case Combine::Min:
    return isFloat ? Value(arith::MinimumFOp::create(b, x, y,
                                                     arith::FastMathFlags::nsz))
                   : Value(arith::MinSIOp::create(b, x, y));
  case Combine::UnsignedMax:
    return arith::MaxUIOp::create(b, x, y);
  case Combine::UnsignedMin:
    return arith::MinUIOp::create(b, x, y);
  }
  llvm_unreachable("unknown combination");
}

/// Sums of at most so many elements that lie apart are written out: a loop over
/// them would be the innermost one, across memory.
static constexpr int64_t kMostWrittenOut = 8;

/// The indices of `shape` in row-major order, as constants.
static SmallVector<Values> listIndices(RowEmitter &e, ArrayRef<int64_t> shape) {
  SmallVector<Values> indices{{}};
  for (int64_t size : shape) {
    SmallVector<Values> longer;
    for (const Values &index : indices)
      for (int64_t at = 0; at < size; ++at) {
        longer.push_back(index);
        longer.back().push_back(e.constantIndex(at));
      }
    indices = std::move(longer);
  }
  return indices;
}

Value RowEmitter::reduce(Combine kind, Type type, ArrayRef<int64_t> shape,
                         function_ref<Value(ArrayRef<Value>)> term,
                         bool areNeighbours) {
  Value neutral = emitNeutral(b, kind, type);
  auto combine = [&](ArrayRef<Value> index, ValueRange carried) -> Values {
    Value x = term(index);
    return {emitCombine(b, kind, carried[0], x)};
  };
  if (areNeighbours || ShapedType::getNumElements(shape) > kMostWrittenOut)
    return loops(shape, neutral, combine)[0];
  Values sum{neutral};
  for (const Values &index : listIndices(*this, shape))
    sum = combine(index, sum);
  return sum[0];
}

/// One pass into scratch, or, where that has no room, a sum of all that comes
/// before for each element.
Value RowEmitter::scan(const Scan &scan, Value at,
                       function_ref<Value(Value)> term) {
  auto sumUp = [&](Value x, Value y) {
    return isa<FloatType>(scan.type) ? Value(arith::AddFOp::create(b, x, y))
                                     : Value(arith::AddIOp::create(b, x, y));
  };
  Value row = once(scan.key, scan.outer, [&]() -> Values {
    Value kept = scratch(scan.type, scan.size);
    if (!kept)
      return {kept};
    Value zero = emitNeutral(b, Combine::Sum, scan.type);
    loop(constantIndex(0), constantIndex(scan.size), zero,
         [&](Value step, ValueRange carried) -> Values {
           Value place = step;
           if (scan.isReverse)
             place = add(mul(step, -1), constantIndex(scan.size - 1));
           Value sum = sumUp(carried[0], term(place));
           storeScratch(scan.isExclusive ? carried[0] : sum, kept, place);
           return {sum};
         });
    return {kept};
  })[0];
  if (row)
    return loadScratch(row, at, scan.type);
  Value zero = emitNeutral(b, Combine::Sum, scan.type);
  Value next = add(at, constantIndex(1));
  Value begin = constantIndex(0), end = constantIndex(scan.size);
  if (scan.isReverse)
    begin = scan.isExclusive ? next : at;
  else
    end = scan.isExclusive ? at : next;
  return loop(begin, end, zero, [&](Value step, ValueRange carried) -> Values {
    return {sumUp(carried[0], term(step))};
  })[0];
}

std::pair<Value, Value>
RowEmitter::choose(int64_t size, Type type,
                   function_ref<Candidate(Value)> candidate) {
  using arith::CmpIPredicate;
  // Constants are made where they are used, in whichever loop that is.
  auto constant = [&](Type of, const APInt &value) -> Value {
    return arith::ConstantOp::create(b, b.getIntegerAttr(of, value));
  };
  auto none = [&] { return constant(b.getI64Type(), APInt::getAllOnes(64)); };
  unsigned width = type.getIntOrFloatBitWidth();
  Value end = constantIndex(size);
  Value least = constant(type, APInt::getSignedMinValue(width));
  Values best =
      loop(constantIndex(0), end, {least, none()},
           [&](Value at, ValueRange so) -> Values {
             auto [order, counts] = candidate(at);
             Value greater =
                 arith::CmpIOp::create(b, CmpIPredicate::sgt, order, so[0]);
             Value first =
                 arith::CmpIOp::create(b, CmpIPredicate::eq, so[1], none());
             Value better = arith::AndIOp::create(
                 b, counts, arith::OrIOp::create(b, greater, first));
             return {arith::SelectOp::create(b, better, order, so[0]),
                     arith::SelectOp::create(b, better, at, so[1])};
           });
  return {best[1], best[0]};
}

std::pair<Value, Value>
RowEmitter::filter(Value count, int64_t most,
                   function_ref<Value(Value)> getPlace,
                   function_ref<Value(Value)> isWanted) {
  Value places = scratch(b.getI64Type(), most);
  if (!places)
    return {};
  Value zero = constantIndex(0), one = constantIndex(1);
  Value end =
      loop(zero, count, zero, [&](Value number, ValueRange carried) -> Values {
        Value place = getPlace(number);
        Value wanted = isWanted(place);
        // Overwritten by the next one if it does not count.
        storeScratch(place, places, carried[0]);
        return {arith::AddIOp::create(
            b, carried[0], arith::SelectOp::create(b, wanted, one, zero))};
      })[0];
  return {places, end};
}
