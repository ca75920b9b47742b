// Programs of lookups in a rank's own rows of a table, and of what is scattered
// into these.

#include "RuleProperties.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

namespace {
/// One rank's arithmetic on indices into a table of `size` rows, of which it
/// has `own`; now and then it is wrong in one place.
struct OwnIndices {
  OwnIndices(RuleProgram &p, Value indices, ArrayRef<StringAttr> axes,
             int64_t size, int64_t own, bool countsFromEnd)
      : p(p), type(cast<RankedTensorType>(indices.getType())) {
    auto &b = p.local;
    using nn::ComparePredicate;
    int wrong = p.pick(12); // most of them are none
    Value zero = splat(0), whole = splat(size), counted = indices;
    if (countsFromEnd && wrong != 0)
      counted =
          p.make<nn::SelectOp>(b, compare(ComparePredicate::lt, indices, zero),
                               p.make<nn::AddOp>(b, indices, whole), indices);
    auto scalar = RankedTensorType::get({}, b.getI64Type());
    Value begin = p.make<nn::BroadcastOp>(
        b, type,
        p.make<nn::MulOp>(
            b,
            p.make<dist::AxisIndexOp>(b, scalar, p.getMeshName(),
                                      p.getAxes(axes)),
            p.constant(b, scalar, double(wrong == 1 ? own + 1 : own))));
    Value end = p.make<nn::AddOp>(b, begin, splat(wrong == 2 ? own + 1 : own));
    mask = p.make<nn::AndOp>(
        b,
        compare(wrong == 3 ? ComparePredicate::gt : ComparePredicate::ge,
                counted, begin),
        compare(wrong == 4 ? ComparePredicate::le : ComparePredicate::lt,
                counted, end));
    // Of what is looked up more may be let through than is its own.
    Value isOwn = mask;
    if (wrong == 6)
      mask = p.make<nn::AndOp>(b, compare(ComparePredicate::ge, counted, begin),
                               compare(ComparePredicate::le, counted, end));
    Value isThere =
        p.make<nn::AndOp>(b, compare(ComparePredicate::ge, counted, zero),
                          compare(ComparePredicate::lt, counted, whole));
    Value other = p.make<nn::SelectOp>(b, isThere, zero, indices);
    Value inRange = wrong == 5 ? p.make<nn::AddOp>(b, counted, splat(0))
                               : p.make<nn::SubOp>(b, counted, begin);
    row = p.make<nn::SelectOp>(b, isOwn, inRange, other);
  }
  Value splat(int64_t number) {
    return p.constant(p.local, type, double(number));
  }
  Value compare(nn::ComparePredicate predicate, Value lhs, Value rhs) {
    return p.make<nn::CompareOp>(p.local, predicate, lhs, rhs);
  }

  RuleProgram &p;
  RankedTensorType type;
  Value mask, row;
};

/// A table of which ranks along axes have ranges of rows.
struct Table {
  explicit Table(RuleProgram &p) : rows(p.pickOf<int64_t>({2, 4, 6, 8})) {
    for (StringAttr axis : p.axes)
      if (p.getSize(axis) > 1 && p.chance(60)) {
        axes.push_back(axis);
        ranks *= p.getSize(axis);
      }
    p.isValid &= ranks > 1 && rows % ranks == 0;
    columns = p.pickOf<int64_t>({1, 2, 4});
    own = p.isValid ? rows / ranks : 1;
  }
  Piece getPiece(RuleProgram &p, Value table) {
    Piece piece = p.pickPiece(table, {15, 5, 0, 10, 0, 0});
    auto drop = [&](auto &from) {
      llvm::erase_if(from, [&](StringAttr axis) {
        return llvm::is_contained(axes, axis);
      });
    };
    drop(piece.dims[1].axes);
    drop(piece.partial);
    auto order = piece.dims[0].order;
    piece.dims[0] = Dim();
    piece.dims[0].axes.assign(axes.begin(), axes.end());
    piece.dims[0].order = order;
    return piece;
  }

  SmallVector<StringAttr> axes;
  int64_t ranks = 1, rows, columns, own;
};
} // namespace

static Piece pickIndices(RuleProgram &p, Value indices, const Piece &table) {
  Piece piece = p.pickPiece(indices, {0, 0, 0, 5, 0, 0});
  piece.partial.clear();
  llvm::erase_if(piece.dims[0].axes, [&](StringAttr axis) {
    return llvm::is_contained(table.dims[0].axes, axis) ||
           (p.chance(90) && (llvm::is_contained(table.dims[1].axes, axis) ||
                             llvm::is_contained(table.partial, axis)));
  });
  return piece;
}

/// `number` where the mask of rows does not hold.
static Value maskRows(RuleProgram &p, Value mask, Value x, double number) {
  auto type = cast<RankedTensorType>(x.getType());
  auto flags = type.clone(p.local.getI1Type());
  Value column = p.make<nn::ReshapeOp>(
      p.local, flags.clone(ArrayRef<int64_t>{type.getDimSize(0), 1}), mask);
  return p.make<nn::SelectOp>(p.local,
                              p.make<nn::BroadcastOp>(p.local, flags, column),
                              x, p.constant(p.local, type, number));
}

static void makeLookup(RuleProgram &p) {
  Table t(p);
  if (!p.isValid)
    return;
  bool fromEnd = p.chance(50);
  Value table = p.takeWhole({t.rows, t.columns}),
        indices =
            p.takeWhole({p.pickOf<int64_t>({2, 4, 6})}, p.whole.getI64Type(),
                        t.rows, fromEnd ? -t.rows : 0);
  auto gather = [&](OpBuilder &b, Value from, Value at) {
    return p.make<nn::GatherOp>(
        b, RankedTensorType::get({shapeOf(at)[0], shapeOf(from)[1]}, p.f64),
        from, at, uint64_t(0), IntegerAttr(), !fromEnd);
  };
  gather(p.whole, table, indices);
  Piece held = t.getPiece(p, table);
  Value x = p.take(held), i = p.take(pickIndices(p, indices, held));
  OwnIndices own(p, i, t.axes, t.rows, t.own, fromEnd);
  Value rows = gather(p.local, x, own.row);
  Value made = maskRows(p, own.mask, rows, p.chance(93) ? 0 : 2);
  p.follow(made);
  p.ask(made.getDefiningOp(), {RuleId::Lookup});
}

static void makeOwnScatter(RuleProgram &p) {
  Table t(p);
  if (!p.isValid)
    return;
  int64_t count = p.pickOf<int64_t>({2, 4, 6});
  Value table = p.takeWhole({t.rows, t.columns}),
        indices = p.takeWhole({count}, p.whole.getI64Type(), t.rows, -t.rows),
        updates = p.takeWhole({count, t.columns});
  auto type = cast<RankedTensorType>(table.getType());
  if (p.chance(50))
    table = p.constant(p.whole, type, 0);
  p.make<nn::ScatterAddOp>(p.whole, type, table, indices, updates, 0, 0);
  Piece held = t.getPiece(p, updates);
  // Of the updates a rank has all that the indices are of.
  Piece at = pickIndices(p, indices, held);
  held.dims[0] = at.dims[0];
  Value i = p.take(at), u = p.take(held);
  auto own = RankedTensorType::get({t.own, shapeOf(u)[1]}, p.f64);
  Value onto;
  if (table.getDefiningOp()) {
    onto = p.constant(p.local, own, 0);
  } else {
    Piece rows = t.getPiece(p, table);
    if (p.chance(85)) {
      rows.dims[1] = held.dims[1];
      rows.partial = held.partial;
      rows.reduction = held.reduction;
      rows.dims[0].order.clear();
    }
    onto = p.take(rows);
  }
  OwnIndices at0(p, i, t.axes, t.rows, t.own, true);
  Value masked = maskRows(p, at0.mask, u, p.chance(93) ? 0 : 2);
  Value made = p.make<nn::ScatterAddOp>(p.local, onto.getType(), onto, at0.row,
                                        masked, 0, 0);
  p.follow(made);
  p.ask(made.getDefiningOp(), {RuleId::OwnScatter});
}

ArrayRef<RuleProperty> test::getLookupProperties() {
  static constexpr RuleProperty kProperties[] = {
      {RuleId::Lookup, "lookups", makeLookup},
      {RuleId::OwnScatter, "scatters into own rows", makeOwnScatter}};
  return kProperties;
}
