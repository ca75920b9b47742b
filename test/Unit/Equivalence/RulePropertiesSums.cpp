// Programs of the rules of sums: over micro-batches, in another order, term by
// term.

#include "RuleProperties.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

static Value addOf(RuleProgram &p, OpBuilder &builder, Value lhs, Value rhs) {
  return p.make<nn::AddOp>(builder, lhs, rhs);
}

/// a + (b + c) is (a + b) + c.
static void makeTerms(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 3);
  Value a = p.takeWhole(shape), b = p.takeWhole(shape), c = p.takeWhole(shape);
  Value lhs = addOf(p, p.whole, a, b);
  if (p.chance(70))
    addOf(p, p.whole, lhs, c);
  if (p.chance(50))
    addOf(p, p.whole, b, c);
  RuleProgram::Kinds kinds;
  kinds.padding = 25;
  if (p.chance(35)) // rows of one, columns of the other
    kinds = {0, 45, 0, 0, 0, 10};
  Piece first = p.pickPiece(p.pickOf({a, b, lhs}), kinds),
        second = p.pickPiece(p.pickOf({b, c, c}), kinds);
  Value x = p.take(first), y = p.take(second);
  if (p.chance(25))
    x = p.takeTerms({{first}, {p.likewise(first, c)}});
  Value sum = p.chance(50) ? addOf(p, p.local, x, y) : addOf(p, p.local, y, x);
  p.ask(sum.getDefiningOp(), {RuleId::Terms});
}

/// A table, indices into one of its dimensions, and what is added there.
struct Scatter {
  SmallVector<int64_t> shape, indices, updates;
  int64_t dim, batch;
};
static Scatter pickScatter(RuleProgram &p) {
  Scatter s;
  s.shape = p.pickShape(1, 3);
  s.dim = p.pick(s.shape.size());
  s.batch = p.chance(30) ? p.pick(s.dim + 1) : 0;
  s.indices.append(s.shape.begin(), s.shape.begin() + s.batch);
  for (int64_t more = p.pick(3); more > 0; --more)
    s.indices.push_back(p.pickOf<int64_t>({1, 2, 4}));
  s.updates.append(s.shape.begin(), s.shape.begin() + s.dim);
  s.updates.append(s.indices.begin() + s.batch, s.indices.end());
  s.updates.append(s.shape.begin() + s.dim + 1, s.shape.end());
  return s;
}
static Value scatterOf(RuleProgram &p, OpBuilder &builder, Value init,
                       Value indices, Value updates, int64_t dim,
                       int64_t batch) {
  return p.make<nn::ScatterAddOp>(builder, init.getType(), init, indices,
                                  updates, dim, batch);
}

static void makeMergedScatter(RuleProgram &p) {
  Scatter s = pickScatter(p);
  Type i64 = p.whole.getI64Type();
  Value table = p.takeWhole(s.shape),
        indices = p.takeWhole(s.indices, i64, s.shape[s.dim]),
        updates = p.takeWhole(s.updates);
  auto type = cast<RankedTensorType>(table.getType());
  Value zeros = p.constant(p.whole, type, p.chance(70) ? 0 : 3);
  Value scattered =
      scatterOf(p, p.whole, zeros, indices, updates, s.dim, s.batch);
  addOf(p, p.whole, table, scattered);
  RuleProgram::Kinds kinds;
  kinds.order = kinds.parts = kinds.padding = 3;
  kinds.again = 0;
  Piece added = p.pickPiece(updates, kinds), at = p.pickPiece(indices, kinds);
  // The same rows of both, and columns of the table.
  if (p.chance(80))
    for (size_t dim = 0; dim < at.dims.size(); ++dim) {
      size_t of = dim < size_t(s.batch) ? dim : dim - s.batch + s.dim;
      at.dims[dim] = added.dims[of];
      at.partial.clear();
    }
  kinds.again = 0;
  Piece onto = p.pickPiece(table, kinds);
  if (p.chance(80)) {
    onto.partial = added.partial;
    onto.reduction = added.reduction;
    for (size_t dim = 0; dim < onto.dims.size(); ++dim) {
      onto.dims[dim] = Dim();
      if (int64_t(dim) != s.dim)
        onto.dims[dim] = added.dims[int64_t(dim) < s.dim
                                        ? dim
                                        : dim - 1 + s.indices.size() - s.batch];
    }
    for (size_t dim = s.batch; dim < at.dims.size(); ++dim)
      for (StringAttr axis : at.dims[dim].axes)
        onto.partial.push_back(axis);
    onto.partial = PieceMaker(p.getMesh()).inOrder(onto.partial);
  }
  int64_t dim = s.dim, batch = s.batch;
  if (p.chance(10))
    dim = p.pick(s.shape.size());
  Value made = scatterOf(p, p.local, p.take(onto), p.take(at), p.take(added),
                         dim, batch);
  p.ask(made.getDefiningOp(), {RuleId::MergedScatter});
}

/// An accumulator, and what is combined with it.
static void makeSum(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 2);
  Value a = p.takeWhole(shape), b = p.takeWhole(shape);
  if (p.chance(50))
    addOf(p, p.whole, a, b);
  RuleProgram::Kinds kinds;
  Piece term = p.pickPiece(a, kinds), other = p.pickPiece(b, kinds);
  Value x = p.take(term);
  auto type = cast<RankedTensorType>(x.getType());
  std::vector<std::vector<Piece>> before;
  dist::Reduction combines = dist::Reduction::sum;
  if (p.chance(40)) {
    before.push_back({other});
    if (p.chance(40))
      combines = dist::Reduction::max;
  }
  Value sum = p.takeSum(type, before, combines), made;
  switch (p.pick(5)) {
  case 0:
    made = p.make<nn::MaxOp>(p.local, sum, x);
    break;
  case 1:
    made = addOf(p, p.local, sum, sum);
    break;
  case 2:
    made = addOf(p, p.local, x, sum);
    break;
  default:
    made = addOf(p, p.local, sum, x);
  }
  p.ask(made.getDefiningOp(), {RuleId::Sum});
}

/// The sum over micro-batches, and what is scattered onto it, or it onto that.
static void makeScatteredSum(RuleProgram &p) {
  int64_t rows = p.pickOf<int64_t>({2, 4}), columns = p.pickOf<int64_t>({1, 2});
  Value indices = p.takeWhole({rows}, p.whole.getI64Type(), rows),
        updates = p.takeWhole({rows, columns}),
        table = p.takeWhole({rows, columns});
  auto type = cast<RankedTensorType>(updates.getType());
  Value zeros = p.constant(p.whole, type, 0);
  scatterOf(p, p.whole, zeros, indices, updates, 0, 0);
  scatterOf(p, p.whole, zeros, indices, table, 0, 0);
  Piece all;
  all.logical = updates;
  all.dims.resize(2);
  Piece at;
  at.logical = indices;
  at.dims.resize(1);
  // Of a sum the updates are not known but for its terms.
  Value sum = p.takeSum(type, {{all}}), i = p.take(at);
  Value made =
      p.chance(50)
          ? scatterOf(p, p.local, sum, i, p.take(all), 0, 0)
          : scatterOf(p, p.local, p.take(p.likewise(all, table)), i, sum, 0, 0);
  p.ask(made.getDefiningOp(), {RuleId::Sum});
}

/// Ops of one operand, some of them linear, in either program.
static Value applyOne(RuleProgram &p, OpBuilder &builder, int kind, Value x,
                      Value by) {
  switch (kind) {
  case 0:
    return p.make<nn::NegOp>(builder, x);
  case 1:
    return p.make<nn::AbsOp>(builder, x);
  case 2:
    return p.make<nn::MulOp>(builder, x, by);
  case 3:
    return p.make<nn::MulOp>(builder, x, x);
  case 4:
    return p.make<nn::DivOp>(builder, by, x);
  case 5:
    return p.make<nn::DivOp>(builder, x, by);
  case 6:
    return p.make<nn::SubOp>(builder, x, by);
  default: {
    SmallVector<int64_t> permutation;
    for (int64_t dim = shapeOf(x).size(); dim-- > 0;)
      permutation.push_back(dim);
    return p.make<nn::TransposeOp>(builder, x, permutation);
  }
  }
}

static void makeEachTerm(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 3);
  Value a = p.takeWhole(shape), b = p.takeWhole(shape), by = p.takeWhole(shape);
  int kind = p.pick(8);
  Value first = applyOne(p, p.whole, kind, a, by),
        second = applyOne(p, p.whole, kind, b, by);
  if (p.chance(50))
    addOf(p, p.whole, first, second);
  Piece term = p.pickPiece(a, {}), other = term;
  other.logical = b;
  if (llvm::any_of(term.dims, [](const Dim &dim) { return dim.free; }))
    return;
  Value sum = p.takeTerms({{term}, {other}});
  Piece factor = p.pickPiece(by, {30, 0, 8, 8, 5, 95});
  if (p.chance(90))
    factor.partial.clear();
  Value made = applyOne(p, p.local, kind, sum, p.take(factor));
  p.ask(made.getDefiningOp(), {RuleId::EachTerm});
}

/// f(a + b) of a piece of a, and one of b, added.
static void makeDistributed(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 3);
  Value a = p.takeWhole(shape), b = p.takeWhole(shape), by = p.takeWhole(shape);
  int kind = p.pick(8);
  bool isDifference = p.chance(30);
  Value sum =
      isDifference ? p.make<nn::SubOp>(p.whole, a, b) : addOf(p, p.whole, a, b);
  applyOne(p, p.whole, kind, sum, by);
  Piece term = p.pickPiece(a, {30, 0, 8, 8, 5, 0}),
        other = p.pickPiece(b, {30, 0, 8, 8, 5, 95}),
        factor = p.pickPiece(by, {30, 0, 8, 8, 5, 95});
  if (p.chance(90))
    factor.partial.clear();
  Value with = p.take(factor);
  Value x = applyOne(p, p.local, kind, p.take(term), with),
        y = applyOne(p, p.local, kind, p.take(other), with);
  Value made =
      isDifference ? p.make<nn::SubOp>(p.local, x, y) : addOf(p, p.local, x, y);
  p.ask(x.getDefiningOp(), {RuleId::Map, RuleId::Distributed});
  p.ask(y.getDefiningOp(), {RuleId::Map, RuleId::Distributed});
  p.ask(made.getDefiningOp(), {RuleId::Map});
}

ArrayRef<RuleProperty> test::getSumProperties() {
  static constexpr RuleProperty kProperties[] = {
      {RuleId::Terms, "terms", makeTerms},
      {RuleId::MergedScatter, "scatters", makeMergedScatter},
      {RuleId::Sum, "accumulators", makeSum},
      {RuleId::Sum, "scattered accumulators", makeScatteredSum},
      {RuleId::EachTerm, "functions of sums", makeEachTerm},
      {RuleId::Distributed, "functions of terms", makeDistributed}};
  return kProperties;
}
