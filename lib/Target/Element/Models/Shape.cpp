// The scalar code of ops that move elements: index arithmetic, and for gathers
// the check that an index is within its table.

#include "Group.h"
#include "dialects/Interfaces/ElementSource.h"
#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"
#include "lib/Target/Element/Scatter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace accel;
using Values = ElementBuilder::Values;

namespace {
template <typename Model, typename Op>
using ElementModel = ElementSourceOpInterface::ExternalModel<Model, Op>;

/// Dimensions that were split or joined are matched in groups of equal product:
/// those that stay keep their index.
struct ReshapeElement : ElementModel<ReshapeElement, nn::ReshapeOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    ArrayRef<int64_t> from = shapeOf(op->getOperand(0));
    ArrayRef<int64_t> to = shapeOf(op->getResult(0));
    Values source;
    if (llvm::is_contained(from, 0)) { // in a loop that never runs
      source.assign(from.size(), e.constantIndex(0));
      return e.element(op->getOperand(0), source);
    }
    size_t i = 0, j = 0;
    while (i < from.size() || j < to.size()) {
      size_t iBegin = i, jBegin = j;
      int64_t left = 1, right = 1;
      if (i < from.size())
        left = from[i++];
      if (j < to.size())
        right = to[j++];
      while (left != right) {
        if (left < right && i < from.size())
          left *= from[i++];
        else if (j < to.size())
          right *= to[j++];
        else
          left *= from[i++];
      }
      ArrayRef<int64_t> sizes = from.slice(iBegin, i - iBegin);
      Value position = e.linearize(index.slice(jBegin, j - jBegin),
                                   to.slice(jBegin, j - jBegin));
      llvm::append_range(source, e.delinearize(position, sizes));
    }
    return e.element(op->getOperand(0), source);
  }
};

struct TransposeElement : ElementModel<TransposeElement, nn::TransposeOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    Values source(index.size());
    for (auto [dim, from] :
         llvm::enumerate(cast<nn::TransposeOp>(op).getPermutation()))
      source[from] = index[dim];
    return e.element(op->getOperand(0), source);
  }
};

struct BroadcastElement : ElementModel<BroadcastElement, nn::BroadcastOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    ArrayRef<int64_t> from = shapeOf(op->getOperand(0));
    Values source(index.take_back(from.size()));
    for (auto [at, size] : llvm::zip_equal(source, from))
      if (size == 1)
        at = e.constantIndex(0);
    return e.element(op->getOperand(0), source);
  }
};

/// start + at · step, where a negative step counts down.
static Value stepIndex(ElementBuilder &e, Value at, int64_t start,
                       int64_t step) {
  return e.add(e.mul(at, step), e.constantIndex(start));
}

struct SliceElement : ElementModel<SliceElement, nn::SliceOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    auto slice = cast<nn::SliceOp>(op);
    Values source;
    for (size_t dim = 0; dim < index.size(); ++dim)
      source.push_back(stepIndex(e, index[dim], slice.getStarts()[dim],
                                 slice.getSteps()[dim]));
    return e.element(op->getOperand(0), source);
  }
};

/// How much of what an index takes lies in [first, first + size).
enum class Within { None, Some, All };
static Within isWithin(ElementBuilder &e, Value at, int64_t first,
                       int64_t size) {
  auto range = e.getRange(at);
  if (!range)
    return Within::Some;
  if (range->first >= first && range->second <= first + size)
    return Within::All;
  return range->second <= first || range->first >= first + size ? Within::None
                                                                : Within::Some;
}

/// at - first, held within [0, size): what lies outside is not selected.
static Value clampedIndex(ElementBuilder &e, Value at, int64_t first,
                          int64_t size) {
  ImplicitLocOpBuilder &b = e.builder();
  Value moved = e.add(at, e.constantIndex(-first));
  if (isWithin(e, at, first, size) == Within::All)
    return moved;
  e.wantCut(at, first);
  e.wantCut(at, first + size);
  moved = arith::MaxSIOp::create(b, moved, e.constantIndex(0));
  return arith::MinSIOp::create(b, moved, e.constantIndex(size - 1));
}

struct ConcatElement : ElementModel<ConcatElement, nn::ConcatOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    auto concat = cast<nn::ConcatOp>(op);
    int64_t dim = concat.getDim(), first = 0;
    Value result;
    for (Value input : concat.getInputs()) {
      int64_t size = shapeOf(input)[dim];
      if (size == 0)
        continue;
      Values source(index);
      if (Within within = isWithin(e, index[dim], first, size);
          within != Within::Some) {
        first += size;
        if (within == Within::None)
          continue;
        source[dim] = e.add(index[dim], e.constantIndex(size - first));
        return e.element(input, source);
      }
      source[dim] =
          e.once(input.getAsOpaquePointer(),
                 {index[dim], e.constantIndex(first)}, [&]() -> Values {
                   return {clampedIndex(e, index[dim], first, size)};
                 })[0];
      Value element = e.element(input, source);
      ImplicitLocOpBuilder &b = e.builder();
      if (!result) {
        result = element;
      } else {
        Value within = arith::CmpIOp::create(
            b, arith::CmpIPredicate::sge, index[dim], e.constantIndex(first));
        result = arith::SelectOp::create(b, within, element, result);
      }
      first += size;
    }
    return result;
  }
};

struct PadElement : ElementModel<PadElement, nn::PadOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    auto pad = cast<nn::PadOp>(op);
    ImplicitLocOpBuilder &b = e.builder();
    ArrayRef<int64_t> from = shapeOf(pad.getInput());
    Value value = e.element(pad.getValue(), {});
    if (llvm::is_contained(from, 0))
      return value;
    Values source(index);
    Value inside;
    for (size_t dim = 0; dim < index.size(); ++dim) {
      int64_t low = pad.getLow()[dim];
      if (low == 0 && pad.getHigh()[dim] == 0)
        continue;
      Within within = isWithin(e, index[dim], low, from[dim]);
      if (within == Within::None)
        return value;
      source[dim] = clampedIndex(e, index[dim], low, from[dim]);
      if (within == Within::All)
        continue;
      Value same =
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq, source[dim],
                                e.add(index[dim], e.constantIndex(-low)));
      inside = inside ? Value(arith::AndIOp::create(b, inside, same)) : same;
    }
    Value element = e.element(pad.getInput(), source);
    return inside ? Value(arith::SelectOp::create(b, inside, element, value))
                  : element;
  }
};

/// The table index that `indices` holds at `index`: checked, negative ones
/// counted from the end or refused, and 0 if it is refused.
static Value readIndex(ElementBuilder &e, Value indices, ArrayRef<Value> index,
                       int64_t size, bool nonNegative = false) {
  // Not the key of the element itself: what is allowed belongs to this one.
  static const char key = 0;
  int64_t least = nonNegative ? 0 : -size;
  Values full(index);
  full.append({e.constantIndex(size), e.constantIndex(least),
               e.element(indices, index)});
  return e.once(&key, full, [&]() -> Values {
    ImplicitLocOpBuilder &b = e.builder();
    Value at = e.element(indices, index);
    if (at.getType() != b.getI64Type())
      at = arith::ExtSIOp::create(b, b.getI64Type(), at);
    Value zero = e.constantIndex(0), end = e.constantIndex(size);
    Value moved = at;
    if (!nonNegative) {
      Value negative =
          arith::CmpIOp::create(b, arith::CmpIPredicate::slt, at, zero);
      moved = arith::SelectOp::create(b, negative,
                                      arith::AddIOp::create(b, at, end), at);
    }
    Value bad = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, moved, end);
    e.refuse(bad, e.linearize(index, shapeOf(indices)), at, least, size,
             /*isLabel=*/false);
    return {arith::SelectOp::create(b, bad, zero, moved)};
  })[0];
}

struct GatherElement : ElementModel<GatherElement, nn::GatherOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    auto gather = cast<nn::GatherOp>(op);
    size_t dim = gather.getDim();
    size_t rank = gather.getIndices().getType().getRank();
    ArrayRef<int64_t> table = shapeOf(gather.getTable());
    Values source(index.take_front(dim));
    source.push_back(readIndex(e, gather.getIndices(), index.slice(dim, rank),
                               table[dim], gather.getNonNegative()));
    llvm::append_range(source, index.drop_front(dim + rank));
    return e.element(gather.getTable(), source);
  }
};

/// The shape of one batch's indices.
static ArrayRef<int64_t> getOwnIndices(nn::ScatterAddOp scatter) {
  return shapeOf(scatter.getIndices()).drop_front(scatter.getBatchDims());
}

/// The row of the table that the index at `place` of a batch names.
static Value getRow(ElementBuilder &e, nn::ScatterAddOp scatter,
                    ArrayRef<Value> batch, Value place) {
  Values at(batch);
  llvm::append_range(at, e.delinearize(place, getOwnIndices(scatter)));
  return readIndex(e, scatter.getIndices(), at,
                   shapeOf(scatter.getInit())[scatter.getDim()]);
}

/// Whether the index at `place` of a batch names a row of its table.
static Value isNamedBy(ElementBuilder &e, nn::ScatterAddOp scatter,
                       ArrayRef<Value> batch, Value place, Value row) {
  return arith::CmpIOp::create(e.builder(), arith::CmpIPredicate::eq,
                               getRow(e, scatter, batch, place), row);
}

} // namespace

Values element::findUpdatesWithin(ElementBuilder &e, nn::ScatterAddOp scatter,
                                  Value first, Value last) {
  int64_t count = ShapedType::getNumElements(shapeOf(scatter.getIndices()));
  auto [places, found] = e.filter(
      e.constantIndex(count), count, [](Value number) { return number; },
      [&](Value place) -> Value {
        Value row = getRow(e, scatter, /*batch=*/{}, place);
        ImplicitLocOpBuilder &b = e.builder();
        return arith::AndIOp::create(
            b, arith::CmpIOp::create(b, arith::CmpIPredicate::sge, row, first),
            arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, last));
      });
  return {places, found};
}

/// Of a batch's indices, those that name `row`.
static Values findInBatch(ElementBuilder &e, nn::ScatterAddOp scatter,
                          ArrayRef<Value> batch, Value row, ValueRange near) {
  int64_t count = ShapedType::getNumElements(getOwnIndices(scatter));
  Values key(batch);
  key.push_back(row);
  return e.once(scatter.getOperation(), key, [&]() -> Values {
    Type i64 = e.builder().getI64Type();
    auto [places, found] = e.filter(
        near.empty() ? e.constantIndex(count) : near[1], count,
        [&](Value number) {
          return near.empty() ? number : e.loadScratch(near[0], number, i64);
        },
        [&](Value place) { return isNamedBy(e, scatter, batch, place, row); });
    return {places, found};
  });
}

Values element::findUpdates(ElementBuilder &e, nn::ScatterAddOp scatter,
                            Value row, ValueRange near) {
  return findInBatch(e, scatter, /*batch=*/{}, row, near);
}

namespace {
/// Which indices name a row of the table is found once per row; most rows are
/// named by none.
struct ScatterAddElement : ElementModel<ScatterAddElement, nn::ScatterAddOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    auto scatter = cast<nn::ScatterAddOp>(op);
    size_t dim = scatter.getDim();
    ArrayRef<Value> batch = index.take_front(scatter.getBatchDims());
    ArrayRef<int64_t> indices = getOwnIndices(scatter);
    int64_t count = ShapedType::getNumElements(indices);
    Value row = index[dim];
    Type i64 = e.builder().getI64Type();
    Values found = findInBatch(e, scatter, batch, row, /*near=*/{});
    Value start = e.element(scatter.getInit(), index);
    auto update = [&](Value place) {
      Values at(index.take_front(dim));
      llvm::append_range(at, e.delinearize(place, indices));
      llvm::append_range(at, index.drop_front(dim + 1));
      return e.element(scatter.getUpdates(), at);
    };
    auto sum = [&](Value x, Value y) {
      ImplicitLocOpBuilder &b = e.builder();
      return isa<FloatType>(x.getType())
                 ? Value(arith::AddFOp::create(b, x, y))
                 : Value(arith::AddIOp::create(b, x, y));
    };
    if (found[0])
      return e.loop(e.constantIndex(0), found[1], start,
                    [&](Value number, ValueRange carried) -> Values {
                      Value place = e.loadScratch(found[0], number, i64);
                      return {sum(carried[0], update(place))};
                    })[0];
    return e.loop(e.constantIndex(0), e.constantIndex(count), start,
                  [&](Value place, ValueRange carried) -> Values {
                    Value more = sum(carried[0], update(place));
                    return {arith::SelectOp::create(
                        e.builder(), isNamedBy(e, scatter, batch, place, row),
                        more, carried[0])};
                  })[0];
  }
};

struct GatherNdElement : ElementModel<GatherNdElement, nn::GatherNdOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    auto gather = cast<nn::GatherNdOp>(op);
    size_t batch = gather.getBatchDims();
    ArrayRef<int64_t> table = shapeOf(gather.getTable());
    ArrayRef<int64_t> indices = shapeOf(gather.getIndices());
    size_t lead = indices.size() - 1;
    Values source(index.take_front(batch));
    for (int64_t part = 0; part < indices.back(); ++part) {
      Values at(index.take_front(lead));
      at.push_back(e.constantIndex(part));
      source.push_back(
          readIndex(e, gather.getIndices(), at, table[batch + part]));
    }
    llvm::append_range(source, index.drop_front(lead));
    return e.element(gather.getTable(), source);
  }
};
} // namespace

void element::attachShapeModels(MLIRContext *context) {
  nn::ReshapeOp::attachInterface<ReshapeElement>(*context);
  nn::TransposeOp::attachInterface<TransposeElement>(*context);
  nn::BroadcastOp::attachInterface<BroadcastElement>(*context);
  nn::SliceOp::attachInterface<SliceElement>(*context);
  nn::ConcatOp::attachInterface<ConcatElement>(*context);
  nn::PadOp::attachInterface<PadElement>(*context);
  nn::GatherOp::attachInterface<GatherElement>(*context);
  nn::GatherNdOp::attachInterface<GatherNdElement>(*context);
  nn::ScatterAddOp::attachInterface<ScatterAddElement>(*context);
}
