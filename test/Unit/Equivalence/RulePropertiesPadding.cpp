// Programs of one rank that has more rows than the logical program: reshapes,
// lookups whose indices are checked, and what these scatter.

#include "RuleProperties.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

/// All of a value, padded along a dimension, more often than not.
static Piece pickPadded(RuleProgram &p, Value whole, int64_t dim) {
  Piece piece = p.pickPiece(whole, {12, 8, 5, 8, 3, 0});
  if (p.chance(80))
    for (Dim &each : piece.dims) {
      each.axes.clear();
      each.parts = {};
    }
  if (!p.chance(90))
    return piece;
  piece.dims[dim] = Dim();
  piece.dims[dim].padding = 1 + p.pick(3);
  piece.dims[dim].zeros = p.chance(50);
  return piece;
}

static int64_t countElements(ArrayRef<int64_t> shape) {
  return ShapedType::getNumElements(shape);
}

/// Neighbours on either side of one dimension merged, or taken apart.
static void makePaddedReshape(RuleProgram &p) {
  auto pickSizes = [&](int64_t most) {
    SmallVector<int64_t> sizes;
    for (int64_t more = p.pick(most + 1); more > 0; --more)
      sizes.push_back(p.pickOf<int64_t>({1, 2, 2, 3, 4}));
    return sizes;
  };
  SmallVector<int64_t> before = pickSizes(2), after = pickSizes(2);
  int64_t rows = p.pickOf<int64_t>({1, 2, 3, 4});
  auto join = [&](ArrayRef<int64_t> first, int64_t middle,
                  ArrayRef<int64_t> last) {
    SmallVector<int64_t> shape(first);
    shape.push_back(middle);
    llvm::append_range(shape, last);
    return shape;
  };
  auto change = [&](ArrayRef<int64_t> sizes) {
    SmallVector<int64_t> changed(sizes);
    if (p.chance(60) && changed.size() == 2)
      changed = {changed[0] * changed[1]};
    else if (p.chance(50) && changed.size() == 1 && changed[0] % 2 == 0)
      changed = {changed[0] / 2, 2};
    if (p.chance(30))
      changed.insert(changed.begin() + p.pick(changed.size() + 1), 1);
    return changed;
  };
  SmallVector<int64_t> first = change(before), last = change(after);
  SmallVector<int64_t> in = join(before, rows, after),
                       out = join(first, rows, last);
  if (p.chance(30))
    std::swap(out[p.pick(out.size())], out[p.pick(out.size())]);
  Value a = p.takeWhole(in);
  p.make<nn::ReshapeOp>(p.whole, RankedTensorType::get(out, p.f64), a);
  int64_t from = before.size();
  Piece piece = pickPadded(p, a, from);
  Value x = p.take(piece);
  // The program's shape, with the padded rows in one of the dimensions.
  SmallVector<int64_t> to(out);
  int64_t at = p.chance(75) ? first.size() : p.pick(out.size());
  to[at] += piece.dims[from].padding;
  if (countElements(to) != countElements(shapeOf(x))) {
    p.isValid = false;
    return;
  }
  Value made = p.make<nn::ReshapeOp>(
      p.local, cast<RankedTensorType>(x.getType()).clone(to), x);
  p.ask(made.getDefiningOp(), {RuleId::PaddedReshape});
}

/// Indices as they come out of a lookup that checks them against a size.
static Value check(RuleProgram &p, Value indices, int64_t size,
                   bool nonNegative) {
  Type element = cast<RankedTensorType>(indices.getType()).getElementType();
  Value counter = p.make<nn::IotaOp>(
      p.local, RankedTensorType::get({size}, element), 0, p.chance(95) ? 0 : 1);
  return p.make<nn::GatherOp>(p.local, indices.getType(), counter, indices,
                              uint64_t(0), IntegerAttr(), nonNegative);
}

/// A size that indices are checked against: the logical one, most of the time.
static int64_t pickSize(RuleProgram &p, int64_t logical, int64_t held) {
  return p.chance(85) ? logical : p.pickOf({held, logical, logical + 1});
}

static Piece pickPaddedIndices(RuleProgram &p, Value indices) {
  Piece piece = p.pickPiece(indices, {0, 8, 3, 8, 3, 0});
  piece.partial.clear();
  if (p.chance(85))
    for (Dim &dim : piece.dims) {
      dim.axes.clear();
      dim.parts = {};
    }
  return piece;
}

static void makePaddedLookup(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 3), at;
  bool isTuple = p.chance(35), fromEnd = p.chance(60);
  int64_t dim = p.pick(shape.size());
  if (isTuple)
    at.append(shape.begin(), shape.begin() + dim);
  for (int64_t more = p.pick(3); more > 0; --more)
    at.push_back(p.pickOf<int64_t>({1, 2, 4}));
  if (isTuple)
    at.push_back(1);
  Type index = p.pickOf<Type>({p.whole.getI64Type(), p.whole.getI32Type()});
  Value table = p.takeWhole(shape),
        indices = p.takeWhole(at, index, shape[dim], fromEnd ? -shape[dim] : 0);
  bool nonNegative = !isTuple && !fromEnd;
  auto lookUp = [&](OpBuilder &b, Value from, Value by) {
    SmallVector<int64_t> rows(shapeOf(from).take_front(isTuple ? 0 : dim));
    llvm::append_range(rows, isTuple ? shapeOf(by).drop_back() : shapeOf(by));
    llvm::append_range(rows, shapeOf(from).drop_front(dim + 1));
    auto type = RankedTensorType::get(rows, p.f64);
    if (isTuple)
      return p.make<nn::GatherNdOp>(b, type, from, by, uint64_t(dim));
    return p.make<nn::GatherOp>(b, type, from, by, uint64_t(dim), IntegerAttr(),
                                nonNegative);
  };
  lookUp(p.whole, table, indices);
  Value x = p.take(pickPadded(p, table, dim)),
        i = p.take(pickPaddedIndices(p, indices));
  if (p.chance(92))
    i = check(p, i, pickSize(p, shape[dim], shapeOf(x)[dim]),
              p.chance(90) ? nonNegative : !nonNegative);
  Value made = lookUp(p.local, x, i);
  p.follow(made);
  p.ask(made.getDefiningOp(), {RuleId::PaddedLookup});
}

static void makePaddedScatter(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 3);
  int64_t dim = p.pick(shape.size()),
          batch = p.chance(30) ? p.pick(dim + 1) : 0;
  SmallVector<int64_t> at(shape.begin(), shape.begin() + batch);
  for (int64_t more = p.pick(3); more > 0; --more)
    at.push_back(p.pickOf<int64_t>({1, 2, 4}));
  auto shapeUpdates = [&](ArrayRef<int64_t> table, ArrayRef<int64_t> at) {
    SmallVector<int64_t> of(table.take_front(dim));
    llvm::append_range(of, at.drop_front(batch));
    llvm::append_range(of, table.drop_front(dim + 1));
    return of;
  };
  Value indices = p.takeWhole(at, p.whole.getI64Type(), shape[dim],
                              p.chance(60) ? -shape[dim] : 0),
        updates = p.takeWhole(shapeUpdates(shape, at));
  bool isEqual = p.chance(15);
  if (isEqual) {
    indices = p.constant(p.whole, cast<RankedTensorType>(indices.getType()), 0);
    updates = p.constant(p.whole, cast<RankedTensorType>(updates.getType()), 3);
  }
  auto type = RankedTensorType::get(shape, p.f64);
  Value table = p.constant(p.whole, type, p.chance(92) ? 0 : 2);
  p.make<nn::ScatterAddOp>(p.whole, type, table, indices, updates, dim, batch);
  Piece added = p.pickPiece(updates, {15, 8, 3, 8, 3, 0});
  if (p.chance(85))
    for (Dim &each : added.dims) {
      each.axes.clear();
      each.parts = {};
    }
  Value i, u;
  if (isEqual) { // as many of them, or fewer
    SmallVector<int64_t> some(at);
    if (some.size() > size_t(batch) && p.chance(60))
      some.back() = (some.back() + 1) / 2;
    i = p.constant(
        p.local,
        cast<RankedTensorType>(indices.getType()).clone(ArrayRef(some)), 0);
    u = p.constant(p.local,
                   RankedTensorType::get(shapeUpdates(shape, some), p.f64), 3);
  } else {
    i = p.take(pickPaddedIndices(p, indices));
    u = p.take(added);
  }
  SmallVector<int64_t> held(shape);
  held[dim] += p.chance(92) ? 1 + p.pick(3) : 0;
  if (p.chance(92))
    i = check(p, i, pickSize(p, shape[dim], held[dim]), false);
  Value zeros =
      p.constant(p.local, type.clone(ArrayRef(held)), p.chance(92) ? 0 : 2);
  int64_t along = p.chance(95) ? dim : p.pick(shape.size());
  Value made = p.make<nn::ScatterAddOp>(p.local, zeros.getType(), zeros, i, u,
                                        along, batch);
  p.follow(made);
  p.ask(made.getDefiningOp(), {RuleId::PaddedScatter});
}

ArrayRef<RuleProperty> test::getPaddingProperties() {
  static constexpr RuleProperty kProperties[] = {
      {RuleId::PaddedReshape, "padded reshapes", makePaddedReshape},
      {RuleId::PaddedLookup, "checked lookups", makePaddedLookup},
      {RuleId::PaddedScatter, "checked scatters", makePaddedScatter}};
  return kProperties;
}
