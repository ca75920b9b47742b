// The scalar code of reductions and running sums. Sums may be reassociated, so
// that LLVM keeps several partial ones in vectors.

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
} // namespace

void cpu::attachReductionModels(MLIRContext *context) {
  nn::ReduceOp::attachInterface<ReduceElement>(*context);
  nn::CumsumOp::attachInterface<CumsumElement>(*context);
}
