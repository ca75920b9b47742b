// Programs of the rules of what is made part by part: cut, computed, and joined
// or added up again.

#include "RuleProperties.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

namespace {
/// Equal parts of a dimension, and which of them the program takes in turn.
struct Cuts {
  unsigned dim;
  int64_t count, size;
  SmallVector<int64_t> starts;
};
} // namespace

/// Most often each once, in their order; some begin elsewhere, are there twice,
/// or not at all.
static std::optional<Cuts> pickCuts(RuleProgram &p, ArrayRef<int64_t> shape) {
  Cuts cuts;
  cuts.dim = p.pick(shape.size());
  cuts.count = p.pickOf<int64_t>({2, 2, 3, 4});
  cuts.size = shape[cuts.dim] / cuts.count;
  if (cuts.size == 0 || shape[cuts.dim] % cuts.count != 0)
    return std::nullopt;
  for (int64_t place = 0; place < cuts.count; ++place)
    cuts.starts.push_back(place * cuts.size);
  if (p.chance(15))
    std::swap(cuts.starts[0], cuts.starts[p.pick(cuts.count)]);
  if (p.chance(15))
    cuts.starts[p.pick(cuts.count)] = p.pick(shape[cuts.dim] - cuts.size + 1);
  if (p.chance(10))
    cuts.starts.pop_back();
  return cuts;
}

static Value slice(RuleProgram &p, Value value, const Cuts &cuts,
                   int64_t start) {
  SmallVector<int64_t> sizes(shapeOf(value)), starts(sizes.size(), 0),
      steps(sizes.size(), 1);
  sizes[cuts.dim] = cuts.size;
  starts[cuts.dim] = start;
  auto type = cast<RankedTensorType>(value.getType());
  Value cut = p.make<nn::SliceOp>(p.local, type.clone(sizes), value, starts,
                                  sizes, steps);
  p.ask(cut.getDefiningOp(), {RuleId::CutPortion});
  return cut;
}

/// Pieces of two values, split alike, and where they are cut.
struct Pair {
  Value x, y; ///< a rank's
  Value wholeX, wholeY;
  Cuts cuts;
};
static std::optional<Pair> pickPair(RuleProgram &p, int terms) {
  SmallVector<int64_t> shape = p.pickShape(1, 3);
  Pair pair;
  pair.wholeX = p.takeWhole(shape);
  pair.wholeY = p.takeWhole(shape);
  Piece piece = p.pickPiece(pair.wholeX, {terms, 8, 5, 10, 5, 0});
  pair.x = p.take(piece);
  if (p.chance(90))
    piece.partial.clear();
  pair.y = p.take(p.likewise(piece, pair.wholeY));
  if (shapeOf(pair.x) != shapeOf(pair.y))
    return std::nullopt;
  std::optional<Cuts> cuts = pickCuts(p, shapeOf(pair.x));
  if (!cuts)
    return std::nullopt;
  pair.cuts = *cuts;
  return pair;
}

static Value combine(RuleProgram &p, OpBuilder &builder, int kind, Value x,
                     Value y) {
  switch (kind) {
  case 0:
    return p.make<nn::AddOp>(builder, x, y);
  case 1:
    return p.make<nn::NegOp>(builder, x);
  default:
    return p.make<nn::MulOp>(builder, x, y);
  }
}

/// f(x, y) is made of equal parts of x and y, and joined.
static void makeJoined(RuleProgram &p) {
  std::optional<Pair> pair = pickPair(p, 20);
  if (!pair)
    return;
  int kind = p.pick(3);
  combine(p, p.whole, kind, pair->wholeX, pair->wholeY);
  SmallVector<Value> parts;
  for (int64_t start : pair->cuts.starts) {
    int64_t other = p.chance(7) ? pair->cuts.starts.front() : start;
    Value x = slice(p, pair->x, pair->cuts, start),
          y = slice(p, pair->y, pair->cuts, other);
    Value part = combine(p, p.local, kind, x, y);
    p.ask(part.getDefiningOp(), {RuleId::OfPortion});
    parts.push_back(part);
  }
  SmallVector<int64_t> shape(shapeOf(parts.front()));
  unsigned dim = p.chance(90) ? pair->cuts.dim : p.pick(shape.size());
  shape[dim] *= parts.size();
  auto type = cast<RankedTensorType>(parts.front().getType());
  Value joined = p.make<nn::ConcatOp>(p.local, type.clone(shape), parts, dim);
  p.ask(joined.getDefiningOp(), {RuleId::JoinedPortions});
}

/// What is added up over a dimension, or the largest, of each part; added up.
static void makeAdded(RuleProgram &p) {
  std::optional<Pair> pair = pickPair(p, 20);
  if (!pair)
    return;
  auto kind = p.chance(20) ? nn::ReductionKind::max : nn::ReductionKind::sum;
  int64_t dim = p.chance(85) ? pair->cuts.dim : p.pick(shapeOf(pair->x).size());
  auto reduce = [&](OpBuilder &builder, Value value) {
    SmallVector<int64_t> shape(shapeOf(value));
    shape.erase(shape.begin() + dim);
    return p.make<nn::ReduceOp>(builder, RankedTensorType::get(shape, p.f64),
                                kind, value, ArrayRef<int64_t>(dim));
  };
  reduce(p.whole, pair->wholeX);
  Value sum;
  for (int64_t start : pair->cuts.starts) {
    Value part = reduce(p.local, slice(p, pair->x, pair->cuts, start));
    p.ask(part.getDefiningOp(), {RuleId::OfPortion});
    if (!sum) {
      sum = part;
      continue;
    }
    sum = p.make<nn::AddOp>(p.local, sum, part);
    p.ask(sum.getDefiningOp(), {RuleId::AddedPortions});
  }
}

ArrayRef<RuleProperty> test::getPortionProperties() {
  static constexpr RuleProperty kProperties[] = {
      {RuleId::CutPortion, "parts, joined", makeJoined},
      {RuleId::OfPortion, "parts, joined", makeJoined},
      {RuleId::JoinedPortions, "parts, joined", makeJoined},
      {RuleId::OfPortion, "parts, added", makeAdded},
      {RuleId::AddedPortions, "parts, added", makeAdded}};
  return kProperties;
}
