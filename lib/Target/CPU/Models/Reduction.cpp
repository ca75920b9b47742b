// The scalar code of reductions, running sums and choices of the greatest. Sums
// may be reassociated, so that LLVM keeps several partial ones in vectors.

#include "Group.h"
#include "dialects/Interfaces/ElementSource.h"
#include "dialects/NN/NN.h"
#include "lib/Target/CPU/RowEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace accel;
using Values = RowEmitter::Values;

static constexpr arith::FastMathFlags kReorder =
    arith::FastMathFlags::reassoc | arith::FastMathFlags::contract |
    arith::FastMathFlags::nsz;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static bool isUnsigned(Type element) {
  return element.isUnsignedInteger() || element.isInteger(1);
}

/// What combines with any x to x.
static Value emitNeutral(ImplicitLocOpBuilder &b, nn::ReductionKind kind,
                         Type type, bool without) {
  if (isa<FloatType>(type)) {
    double infinity = std::numeric_limits<double>::infinity();
    double value = 0;
    if (kind == nn::ReductionKind::max)
      value = -infinity;
    else if (kind == nn::ReductionKind::min)
      value = infinity;
    else if (kind == nn::ReductionKind::prod)
      value = 1;
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  }
  unsigned width = type.getIntOrFloatBitWidth();
  APInt value = APInt::getZero(width);
  if (kind == nn::ReductionKind::max)
    value = without ? value : APInt::getSignedMinValue(width);
  else if (kind == nn::ReductionKind::min)
    value =
        without ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  else if (kind == nn::ReductionKind::prod)
    value = APInt(width, 1);
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
}

static Value emitCombine(ImplicitLocOpBuilder &b, nn::ReductionKind kind,
                         Value x, Value y, bool without) {
  bool isFloat = isa<FloatType>(x.getType());
  switch (kind) {
  case nn::ReductionKind::sum:
    return isFloat ? Value(arith::AddFOp::create(b, x, y, kReorder))
                   : Value(arith::AddIOp::create(b, x, y));
  case nn::ReductionKind::prod:
    return isFloat ? Value(arith::MulFOp::create(b, x, y, kReorder))
                   : Value(arith::MulIOp::create(b, x, y));
  case nn::ReductionKind::max:
    if (isFloat)
      return arith::MaximumFOp::create(b, x, y, arith::FastMathFlags::nsz);
    return without ? Value(arith::MaxUIOp::create(b, x, y))
                   : Value(arith::MaxSIOp::create(b, x, y));
  case nn::ReductionKind::min:
    if (isFloat)
      return arith::MinimumFOp::create(b, x, y, arith::FastMathFlags::nsz);
    return without ? Value(arith::MinUIOp::create(b, x, y))
                   : Value(arith::MinSIOp::create(b, x, y));
  }
  llvm_unreachable("unknown reduction");
}

/// Sums of at most so many elements that lie apart are written out: a loop over
/// them would be the innermost one, across memory.
static constexpr int64_t kWrittenOut = 8;

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

namespace {
struct ReduceElement
    : ElementSourceOpInterface::ExternalModel<ReduceElement, nn::ReduceOp> {
  Value emitElement(Operation *op, RowEmitter &e, ArrayRef<Value> index) const {
    auto reduce = cast<nn::ReduceOp>(op);
    RankedTensorType input = typeOf(reduce.getInput());
    bool without = isUnsigned(input.getElementType());
    SmallVector<int64_t> shape;
    for (int64_t dim : reduce.getDims())
      shape.push_back(input.getDimSize(dim));
    Value neutral =
        emitNeutral(e.builder(), reduce.getKind(),
                    e.getComputeType(input.getElementType()), without);
    auto combine = [&](ArrayRef<Value> inner, ValueRange carried) -> Values {
      Values full;
      size_t kept = 0, gone = 0;
      for (int64_t dim = 0; dim < input.getRank(); ++dim)
        full.push_back(llvm::is_contained(reduce.getDims(), dim)
                           ? inner[gone++]
                           : index[kept++]);
      Value x = e.element(reduce.getInput(), full);
      return {
          emitCombine(e.builder(), reduce.getKind(), carried[0], x, without)};
    };
    if (llvm::is_contained(reduce.getDims(), input.getRank() - 1) ||
        ShapedType::getNumElements(shape) > kWrittenOut)
      return e.loops(shape, neutral, combine)[0];
    Values sum{neutral};
    for (const Values &inner : listIndices(e, shape))
      sum = combine(inner, sum);
    return sum[0];
  }
};

/// One pass along the dimension into scratch, or, where that is too long, a sum
/// of all that comes before for each element.
struct CumsumElement
    : ElementSourceOpInterface::ExternalModel<CumsumElement, nn::CumsumOp> {
  Value emitElement(Operation *op, RowEmitter &e, ArrayRef<Value> index) const {
    auto cumsum = cast<nn::CumsumOp>(op);
    RankedTensorType input = typeOf(cumsum.getInput());
    int64_t dim = cumsum.getDim(), size = input.getDimSize(dim);
    Type type = e.getComputeType(input.getElementType());
    Value at = index[dim];
    Values outer(index);
    outer.erase(outer.begin() + dim);
    auto read = [&](Value position) {
      Values full(index);
      full[dim] = position;
      return e.element(cumsum.getInput(), full);
    };
    auto combine = [&](Value x, Value y) {
      ImplicitLocOpBuilder &b = e.builder();
      return isa<FloatType>(type) ? Value(arith::AddFOp::create(b, x, y))
                                  : Value(arith::AddIOp::create(b, x, y));
    };
    Value row = e.once(op, outer, [&]() -> Values {
      Value kept = e.scratch(type, size);
      if (!kept)
        return {kept};
      Value zero =
          emitNeutral(e.builder(), nn::ReductionKind::sum, type, false);
      e.loop(e.constantIndex(0), e.constantIndex(size), zero,
             [&](Value step, ValueRange carried) -> Values {
               Value place = step;
               if (cumsum.getReverse())
                 place = e.add(e.mul(step, -1), e.constantIndex(size - 1));
               Value sum = combine(carried[0], read(place));
               e.storeScratch(cumsum.getExclusive() ? carried[0] : sum, kept,
                              place);
               return {sum};
             });
      return {kept};
    })[0];
    if (row)
      return e.loadScratch(row, at, type);
    Value zero = emitNeutral(e.builder(), nn::ReductionKind::sum, type, false);
    Value next = e.add(at, e.constantIndex(1));
    Value begin = e.constantIndex(0), end = e.constantIndex(size);
    if (cumsum.getReverse())
      begin = cumsum.getExclusive() ? next : at;
    else
      end = cumsum.getExclusive() ? at : next;
    return e.loop(begin, end, zero,
                  [&](Value step, ValueRange carried) -> Values {
                    return {combine(carried[0], read(step))};
                  })[0];
  }
};
/// An integer that is greater, with sign, the greater the element is: bits of a
/// float that is negative but for the sign turned, zeros made one and NaNs too.
static Value emitOrder(ImplicitLocOpBuilder &b, Value x, bool without) {
  auto type = dyn_cast<FloatType>(x.getType());
  if (!type) {
    Type wide = b.getI64Type();
    if (x.getType() == wide)
      return x;
    return without ? Value(arith::ExtUIOp::create(b, wide, x))
                   : Value(arith::ExtSIOp::create(b, wide, x));
  }
  auto constant = [&](TypedAttr value) -> Value {
    return arith::ConstantOp::create(b, value);
  };
  Value nan = constant(
      b.getFloatAttr(type, APFloat::getQNaN(type.getFloatSemantics())));
  Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
  Value plain = arith::AddFOp::create(b, x, constant(b.getFloatAttr(type, 0)));
  plain = arith::SelectOp::create(b, isNan, nan, plain);
  unsigned width = type.getWidth();
  Type bits = b.getIntegerType(width);
  Value order = arith::BitcastOp::create(b, bits, plain);
  Value turned = arith::XOrIOp::create(
      b, order,
      constant(b.getIntegerAttr(bits, APInt::getSignedMaxValue(width))));
  Value negative = arith::CmpIOp::create(
      b, arith::CmpIPredicate::slt, order,
      constant(b.getIntegerAttr(bits, APInt::getZero(width))));
  return arith::SelectOp::create(b, negative, turned, order);
}

/// In each round the first of the greatest elements that come after what the
/// round before has chosen; once for a row.
struct TopKElement
    : ElementSourceOpInterface::ExternalModel<TopKElement, nn::TopKOp> {
  Value emitElement(Operation *op, RowEmitter &e, ArrayRef<Value> index) const {
    auto topK = cast<nn::TopKOp>(op);
    RankedTensorType input = typeOf(topK.getInput());
    Type place = e.builder().getI64Type();
    auto read = [&](Value at) {
      Values full(index);
      full.back() = at;
      Value order = emitOrder(e.builder(), e.element(topK.getInput(), full),
                              isUnsigned(input.getElementType()));
      if (!topK.getSmallest())
        return order;
      Value ones = arith::ConstantOp::create(
          e.builder(), e.builder().getIntegerAttr(order.getType(), -1));
      return Value(arith::XOrIOp::create(e.builder(), order, ones));
    };
    Type order = e.getComputeType(input.getElementType());
    order = isa<FloatType>(order)
                ? e.builder().getIntegerType(order.getIntOrFloatBitWidth())
                : place;
    unsigned width = order.getIntOrFloatBitWidth();
    // Constants are made where they are used, in whichever loop that is.
    auto begin = [&] { return e.constantIndex(0); };
    auto constant = [&](Type type, const APInt &value) -> Value {
      return arith::ConstantOp::create(e.builder(),
                                       e.builder().getIntegerAttr(type, value));
    };
    auto none = [&] { return constant(place, APInt::getAllOnes(64)); };
    auto beforeAll = [&]() -> Values {
      return {constant(order, APInt::getSignedMaxValue(width)), none()};
    };
    auto compare = [&](arith::CmpIPredicate predicate, Value x, Value y) {
      return Value(arith::CmpIOp::create(e.builder(), predicate, x, y));
    };
    // `last` and `best`: an element's order, and its place.
    auto chooseNext = [&](ValueRange last) {
      Value size = e.constantIndex(input.getShape().back());
      Value least = constant(order, APInt::getSignedMinValue(width));
      return e.loop(begin(), size, {least, none()},
                    [&](Value at, ValueRange best) -> Values {
                      ImplicitLocOpBuilder &b = e.builder();
                      using arith::CmpIPredicate;
                      Value x = read(at);
                      Value comes = arith::OrIOp::create(
                          b, compare(CmpIPredicate::slt, x, last[0]),
                          arith::AndIOp::create(
                              b, compare(CmpIPredicate::eq, x, last[0]),
                              compare(CmpIPredicate::sgt, at, last[1])));
                      Value greater = arith::OrIOp::create(
                          b, compare(CmpIPredicate::sgt, x, best[0]),
                          compare(CmpIPredicate::eq, best[1], none()));
                      Value better = arith::AndIOp::create(b, comes, greater);
                      return {arith::SelectOp::create(b, better, x, best[0]),
                              arith::SelectOp::create(b, better, at, best[1])};
                    });
    };
    Value row = e.once(op, index.drop_back(), [&]() -> Values {
      Value kept = e.scratch(place, topK.getK());
      if (kept)
        e.loop(begin(), e.constantIndex(topK.getK()), beforeAll(),
               [&](Value round, ValueRange last) {
                 Values next = chooseNext(last);
                 e.storeScratch(next[1], kept, round);
                 return next;
               });
      return {kept};
    })[0];
    if (row)
      return e.loadScratch(row, index.back(), place);
    return e.loop(begin(), e.add(index.back(), e.constantIndex(1)), beforeAll(),
                  [&](Value, ValueRange last) { return chooseNext(last); })[1];
  }
};
} // namespace

void cpu::attachReductionModels(MLIRContext *context) {
  nn::TopKOp::attachInterface<TopKElement>(*context);
  nn::ReduceOp::attachInterface<ReduceElement>(*context);
  nn::CumsumOp::attachInterface<CumsumElement>(*context);
}
