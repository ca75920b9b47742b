// The scalar code of reductions, running sums and choices of the greatest.

#include "Group.h"
#include "dialects/Interfaces/ElementSource.h"
#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace accel;
using Values = ElementBuilder::Values;

static Combine getCombine(nn::ReductionKind kind, Type element) {
  switch (kind) {
  case nn::ReductionKind::sum:
    return Combine::Sum;
  case nn::ReductionKind::prod:
    return Combine::Product;
  case nn::ReductionKind::max:
    return isUnsigned(element) ? Combine::UnsignedMax : Combine::Max;
  case nn::ReductionKind::min:
    return isUnsigned(element) ? Combine::UnsignedMin : Combine::Min;
  }
  llvm_unreachable("unknown reduction");
}

namespace {
struct ReduceElement
    : ElementSourceOpInterface::ExternalModel<ReduceElement, nn::ReduceOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    auto reduce = cast<nn::ReduceOp>(op);
    RankedTensorType input = typeOf(reduce.getInput());
    Type element = input.getElementType();
    SmallVector<int64_t> shape;
    for (int64_t dim : reduce.getDims())
      shape.push_back(input.getDimSize(dim));
    auto read = [&](ArrayRef<Value> inner) {
      Values full;
      size_t kept = 0, gone = 0;
      for (int64_t dim = 0; dim < input.getRank(); ++dim)
        full.push_back(llvm::is_contained(reduce.getDims(), dim)
                           ? inner[gone++]
                           : index[kept++]);
      return e.element(reduce.getInput(), full);
    };
    return e.reduce(getCombine(reduce.getKind(), element),
                    e.getComputeType(element), shape, read,
                    llvm::is_contained(reduce.getDims(), input.getRank() - 1));
  }
};

struct CumsumElement
    : ElementSourceOpInterface::ExternalModel<CumsumElement, nn::CumsumOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    auto cumsum = cast<nn::CumsumOp>(op);
    RankedTensorType input = typeOf(cumsum.getInput());
    int64_t dim = cumsum.getDim();
    Values outer(index);
    outer.erase(outer.begin() + dim);
    ElementBuilder::Scan scan{op,
                              outer,
                              e.getComputeType(input.getElementType()),
                              input.getDimSize(dim),
                              cumsum.getReverse(),
                              cumsum.getExclusive()};
    return e.scan(scan, index[dim], [&](Value position) {
      Values full(index);
      full[dim] = position;
      return e.element(cumsum.getInput(), full);
    });
  }
};

/// An integer that is greater, with sign, the greater the element is: bits of a
/// float that is negative but for the sign turned, zeros made one and NaNs too.
static Value emitOrder(ImplicitLocOpBuilder &b, Value x, bool without) {
  auto type = dyn_cast<FloatType>(x.getType());
  if (!type) {
    Type wide = b.getI64Type();
    if (x.getType() == wide && !without)
      return x;
    if (x.getType() == wide)
      return arith::XOrIOp::create(
          b, x,
          arith::ConstantOp::create(
              b, b.getIntegerAttr(wide, APInt::getSignedMinValue(64))));
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
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
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
    // `last`: the order and the place of what was chosen last.
    auto chooseNext = [&](ValueRange last) -> Values {
      auto [chosen, greatest] =
          e.choose(input.getShape().back(), order,
                   [&](Value at) -> ElementBuilder::Candidate {
                     using arith::CmpIPredicate;
                     Value x = read(at);
                     ImplicitLocOpBuilder &b = e.builder();
                     Value comes = arith::OrIOp::create(
                         b, compare(CmpIPredicate::slt, x, last[0]),
                         arith::AndIOp::create(
                             b, compare(CmpIPredicate::eq, x, last[0]),
                             compare(CmpIPredicate::sgt, at, last[1])));
                     return {x, comes};
                   });
      return {greatest, chosen};
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

void element::attachReductionModels(MLIRContext *context) {
  nn::TopKOp::attachInterface<TopKElement>(*context);
  nn::ReduceOp::attachInterface<ReduceElement>(*context);
  nn::CumsumOp::attachInterface<CumsumElement>(*context);
}
