// Programs of rings: keys that go from rank to rank, what rows make of the part
// that has come, and how its terms are joined. One program has it all; a rule
// is asked of one of its ops.

#include "RuleProperties.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

namespace {
/// What a ring is made of, and in which words one rank does it.
class Ring {
public:
  Ring(RuleProgram &p);
  void makeForward();
  void makeBackward();

  /// The ops that a rule may be asked of.
  llvm::SmallVector<Operation *> rotations, rectangles, sums, casts, formulas;

private:
  Piece pickSplit(Value whole, bool isQuery);
  Value rotate(Value x, int64_t by = 1);
  template <typename Op> Value make(Value lhs, Value rhs) {
    Value made = p.make<Op>(p.local, lhs, rhs);
    formulas.push_back(made.getDefiningOp());
    return made;
  }
  template <typename Op> Value make(Value x) {
    Value made = p.make<Op>(p.local, x);
    formulas.push_back(made.getDefiningOp());
    return made;
  }
  Value add(Value lhs, Value rhs) {
    Value made = p.make<nn::AddOp>(p.local, lhs, rhs);
    sums.push_back(made.getDefiningOp());
    return made;
  }
  Value castOf(Value x);
  Value getColumns(int64_t turn);
  DictionaryAttr getSteps(int64_t step) {
    Builder builder(axis.getContext());
    return builder.getDictionaryAttr(
        builder.getNamedAttr(axis, builder.getI64IntegerAttr(step)));
  }
  DictionaryAttr getRowSteps(bool isStriped) {
    if (isStriped && rows > ranks)
      return getSteps(1);
    Builder builder(axis.getContext());
    SmallVector<NamedAttribute> steps;
    int64_t step = shapeOf(ownQuery)[2];
    for (StringAttr each : llvm::reverse(rowsAxes)) {
      steps.emplace_back(each, builder.getI64IntegerAttr(step));
      step *= p.getSize(each);
    }
    return steps.empty() ? DictionaryAttr() : builder.getDictionaryAttr(steps);
  }
  Value getSubtrahend(Value logSumExp, bool isGuarded);
  Value addExps(Value a, Value b, bool isGuarded);
  Value weigh(Value rows, Value part, Value less);
  /// Now and then another turn than that of the keys that are there.
  int64_t say(int64_t turn) { return p.chance(97) ? turn : p.pick(ranks); }

  RuleProgram &p;
  StringAttr axis;
  SmallVector<StringAttr> rowsAxes; ///< mostly that alone
  int64_t ranks = 0, rows = 0, keys = 0, offset = 0;
  bool causal = false, striped = false, zeroRows = false, leveled = false;
  Value query, key, value, mask;             ///< of the logical program
  Value ownQuery, ownKey, ownValue, ownMask; ///< of a rank
  Value oddKey, oddValue; ///< split in another order; mostly there are none
  Piece rowsPiece;
};
} // namespace

/// A piece whose rows, or keys, are split over the ring's axis.
Piece Ring::pickSplit(Value whole, bool isQuery) {
  Piece piece;
  piece.logical = whole;
  piece.dims.resize(4);
  if (isQuery)
    for (StringAttr other : p.axes)
      if (other != axis && !llvm::is_contained(rowsAxes, other) &&
          p.chance(50) && shapeOf(whole)[0] % 2 == 0 && p.getSize(other) == 2 &&
          piece.dims[0].axes.empty())
        piece.dims[0].axes.push_back(other);
  if (!isQuery)
    piece.dims[0] = rowsPiece.dims[0];
  if (isQuery)
    piece.dims[2].axes.assign(rowsAxes.begin(), rowsAxes.end());
  else
    piece.dims[2].axes.push_back(axis);
  int64_t size = shapeOf(whole)[2];
  if (striped && size > ranks &&
      (!isQuery || llvm::equal(rowsAxes, ArrayRef(axis))))
    piece.dims[2].order = {{ranks, 1}, {size / ranks, ranks}};
  return piece;
}

Ring::Ring(RuleProgram &p) : p(p) {
  for (StringAttr each : p.axes)
    if (each != dist::MeshOp::kMicroBatchAxis && p.getSize(each) > 1)
      axis = each;
  if (!axis) {
    p.isValid = false;
    return;
  }
  ranks = p.getSize(axis);
  rowsAxes = {axis};
  if (p.chance(20)) { // other axes, or none
    StringAttr other = p.axes[p.pick(p.axes.size())];
    if (p.chance(60))
      rowsAxes.clear();
    if (other != axis && other != dist::MeshOp::kMicroBatchAxis)
      rowsAxes.insert(p.chance(50) ? rowsAxes.begin() : rowsAxes.end(), other);
  }
  int64_t batch = p.pickOf<int64_t>({1, 1, 2}), keyHeads = 1 + p.pick(2),
          heads = keyHeads * (1 + p.pick(2)), depth = 1 + p.pick(2),
          width = 1 + p.pick(2);
  rows = ranks * (1 + p.pick(2));
  for (StringAttr each : rowsAxes)
    if (each != axis)
      rows *= p.getSize(each);
  keys = p.chance(65) ? rows : ranks * p.pickOf<int64_t>({1, 2, 4});
  causal = p.chance(50);
  striped = p.chance(40);
  zeroRows = p.chance(40);
  offset = causal && p.chance(25) ? p.pick(4) : 0;
  query = p.takeWhole({batch, heads, rows, depth});
  key = p.takeWhole({batch, keyHeads, keys, depth});
  value = p.takeWhole({batch, keyHeads, keys, width});
  int64_t kind = p.pick(4);
  SmallVector<int64_t> shape = {p.chance(50) ? batch : 1,
                                p.chance(50) ? heads : 1,
                                p.chance(80) ? rows : 1, keys};
  auto flags = RankedTensorType::get(shape, p.whole.getI1Type()),
       numbers = RankedTensorType::get(shape, p.f64);
  if (kind == 1) {
    mask = p.takeWhole(shape, p.whole.getI1Type());
  } else if (kind == 2 && (!causal || p.chance(10))) {
    // Far from 0, but not so far that sums of such numbers have no digits.
    double least =
        p.chance(60) ? -std::numeric_limits<double>::infinity() : -1e4;
    mask = p.make<nn::SelectOp>(
        p.whole, p.takeWhole(shape, flags.getElementType()), p.takeWhole(shape),
        p.constant(p.whole, numbers, least));
    leveled = p.chance(60);
  }
  rowsPiece = pickSplit(query, true);
  ownQuery = p.take(rowsPiece);
  ownKey = p.take(pickSplit(key, false));
  ownValue = p.take(pickSplit(value, false));
  if (p.chance(12)) { // the same keys, in another order
    striped = !striped;
    oddKey = p.take(pickSplit(key, false));
    oddValue = p.take(pickSplit(value, false));
    striped = !striped;
  }
  if (!mask)
    return;
  Piece piece;
  piece.logical = mask;
  piece.dims.resize(4);
  for (unsigned dim : {0u, 2u})
    if (shape[dim] == shapeOf(query)[dim])
      piece.dims[dim] = rowsPiece.dims[dim];
  if (striped && keys > ranks && p.chance(95))
    piece.dims[3].order = {{ranks, 1}, {keys / ranks, ranks}};
  ownMask = p.take(piece);
}

Value Ring::rotate(Value x, int64_t by) {
  SmallVector<int64_t> sources;
  for (int64_t rank = 0; rank < ranks; ++rank)
    sources.push_back((rank + ranks - by) % ranks);
  if (p.chance(3))
    std::reverse(sources.begin(), sources.end());
  Value made = p.make<dist::PermuteOp>(
      p.local, x.getType(), x, p.getMeshName(), p.getAxes({axis}),
      p.local.getDenseI64ArrayAttr(sources), TypeAttr());
  rotations.push_back(made.getDefiningOp());
  return made;
}

/// As it is, rounded, or in a type that has all of its numbers.
Value Ring::castOf(Value x) {
  if (!p.chance(10))
    return x;
  auto type = cast<RankedTensorType>(x.getType());
  for (Type element : {Type(p.local.getF32Type()), p.f64}) {
    x = p.make<nn::CastOp>(p.local, type.clone(element), x);
    casts.push_back(x.getDefiningOp());
  }
  return x;
}

/// The columns of a mask that belong to the keys of a turn.
Value Ring::getColumns(int64_t turn) {
  SmallVector<int64_t> shape(shapeOf(ownMask)), zeros(4, 0), ones(4, 1);
  auto type = cast<RankedTensorType>(ownMask.getType());
  Value all = ownMask;
  if (turn > 0) {
    int64_t moved = keys / ranks * turn;
    SmallVector<int64_t> starts(zeros), last(shape), others(shape);
    starts[3] = keys - moved;
    last[3] = moved;
    others[3] = keys - moved;
    all = p.make<nn::ConcatOp>(
        p.local,
        ValueRange{p.make<nn::SliceOp>(p.local, all, starts, last, ones),
                   p.make<nn::SliceOp>(p.local, all, zeros, others, ones)},
        3);
  }
  shape[3] = keys / ranks;
  Value columns = p.make<dist::AllSliceOp>(
      p.local, type.clone(ArrayRef(shape)), all, p.getMeshName(),
      p.getAxes({axis}), p.local.getI64IntegerAttr(3));
  if (!leveled)
    return columns;
  shape[3] = 1;
  Value largest = p.make<nn::ReduceOp>(
      p.local, type.clone(ArrayRef(shape).drop_back()), nn::ReductionKind::max,
      p.chance(95) ? ownMask : columns, ArrayRef<int64_t>{3});
  auto column = type.clone(ArrayRef(shape));
  Value level = p.make<nn::MaxOp>(
      p.local, p.make<nn::ReshapeOp>(p.local, column, largest),
      p.constant(p.local, column, std::numeric_limits<double>::lowest()));
  return p.make<nn::ConcatOp>(p.local, ValueRange{level, columns}, 3);
}

Value Ring::getSubtrahend(Value logSumExp, bool isGuarded) {
  if (!isGuarded)
    return logSumExp;
  Value lowest =
      p.constant(p.local, cast<RankedTensorType>(logSumExp.getType()),
                 std::numeric_limits<double>::lowest());
  return make<nn::MaxOp>(logSumExp, lowest);
}

Value Ring::addExps(Value a, Value b, bool isGuarded) {
  Value most = make<nn::MaxOp>(a, b), least = make<nn::MinOp>(a, b);
  Value less = make<nn::SubOp>(least, getSubtrahend(most, isGuarded));
  return add(most, make<nn::Log1pOp>(make<nn::ExpOp>(less)));
}

Value Ring::weigh(Value rows, Value part, Value less) {
  Value share = make<nn::ExpOp>(make<nn::SubOp>(part, less));
  auto type = cast<RankedTensorType>(rows.getType());
  SmallVector<int64_t> column(type.getShape().drop_back());
  column.push_back(1);
  share = p.make<nn::ReshapeOp>(p.local, type.clone(column), share);
  formulas.push_back(share.getDefiningOp());
  share = p.make<nn::BroadcastOp>(p.local, type, share);
  formulas.push_back(share.getDefiningOp());
  return make<nn::MulOp>(rows, share);
}

static constexpr double kScale = 0.0625;

void Ring::makeForward() {
  p.add(p.whole,
        nn::AttentionOp::create(p.whole, p.loc, query, key, value, mask,
                                llvm::APFloat(kScale), causal, zeroRows, offset,
                                0, nullptr, nullptr, 0, 1));
  if (!p.isValid)
    return;
  Value keysThere = ownKey, valuesThere = ownValue, found, logSumExp;
  int64_t there = 0, last = p.chance(90) ? ranks : 1 + p.pick(ranks);
  for (int64_t turn = 0; turn < last && p.isValid; ++turn) {
    if (turn > 0) {
      int64_t by = p.chance(97) ? 1 : 1 + p.pick(ranks - 1);
      there = (there + by) % ranks;
      keysThere = rotate(keysThere, by);
      valuesThere = p.chance(98) ? rotate(valuesThere, by) : valuesThere;
    }
    Value k = keysThere, v = valuesThere;
    if (oddKey && p.chance(60)) {
      k = oddKey;
      v = oddValue;
      for (int64_t by = 0; by < there; ++by) {
        k = rotate(k);
        v = rotate(v);
      }
    }
    bool isStriped = striped && keys > ranks;
    if (k != keysThere)
      isStriped = !striped && keys > ranks;
    int64_t ownKeys = keys / ranks;
    DictionaryAttr rowSteps, columnSteps;
    if (causal) {
      rowSteps = getRowSteps(isStriped);
      columnSteps = getSteps(isStriped ? 1 : ownKeys);
    }
    bool seesNothing = (mask || causal) && p.chance(97);
    auto part = nn::AttentionOp::create(
        p.local, p.loc, ownQuery, k, v, mask ? getColumns(say(there)) : Value(),
        llvm::APFloat(kScale), causal, seesNothing, offset, 0, rowSteps,
        columnSteps, causal ? say(there) : 0, causal && isStriped ? ranks : 1);
    Value partRows = p.add(p.local, part);
    if (!p.isValid)
      return;
    rectangles.push_back(part);
    Value partLog = part.getLogSumExp();
    partRows = castOf(partRows);
    if (turn > 0 && p.chance(5)) { // they go round themselves
      partRows = rotate(partRows);
      partLog = rotate(partLog);
    }
    if (!found) {
      found = partRows;
      logSumExp = partLog;
      continue;
    }
    bool isGuarded = mask ? p.chance(97) : p.chance(10);
    Value all = addExps(logSumExp, partLog, isGuarded);
    bool makesNan = turn == ranks - 1 && !zeroRows;
    if (p.chance(5))
      makesNan = !makesNan;
    Value less = getSubtrahend(all, isGuarded && !makesNan);
    if (p.chance(4)) // each weighed as the other
      std::swap(found, partRows);
    found = add(weigh(found, p.chance(97) ? logSumExp : partLog, less),
                weigh(partRows, partLog, less));
    logSumExp = all;
  }
  castOf(found);
}

void Ring::makeBackward() {
  auto forward = nn::AttentionOp::create(
      p.whole, p.loc, query, key, value, mask, llvm::APFloat(kScale), causal,
      zeroRows, offset, 0, nullptr, nullptr, 0, 1);
  Value output = p.add(p.whole, forward), logs = forward.getLogSumExp();
  Value gradient = p.takeWhole(shapeOf(output));
  p.add(p.whole, nn::AttentionGradOp::create(
                     p.whole, p.loc, query, key, value, output, logs, gradient,
                     Value(), mask, llvm::APFloat(kScale), causal, zeroRows,
                     offset, 0, nullptr, nullptr, 0, 1));
  p.isValid &= !leveled;
  if (!p.isValid)
    return;
  // What is of rows, split as the queries are, or all in another order.
  auto takeRows = [&](bool isOdd) {
    SmallVector<Value> taken;
    for (Value whole : {query, output, logs, gradient}) {
      Piece piece = rowsPiece;
      piece.logical = whole;
      piece.dims.resize(shapeOf(whole).size());
      if (isOdd && !piece.dims[2].order.empty())
        piece.dims[2].order.clear();
      else if (isOdd && rows > ranks)
        piece.dims[2].order = {{ranks, 1}, {rows / ranks, ranks}};
      taken.push_back(p.take(piece));
    }
    return taken;
  };
  SmallVector<Value> own = takeRows(false), odd;
  if (p.chance(12) && !causal && !mask)
    odd = takeRows(true);
  Value keysThere = ownKey, valuesThere = ownValue, ofQuery, ofKeys[2];
  for (int64_t turn = 1; turn <= ranks && p.isValid; ++turn) {
    bool isLast = turn == ranks;
    keysThere = isLast ? ownKey : rotate(keysThere);
    valuesThere = isLast ? ownValue : rotate(valuesThere);
    bool isStriped = striped && keys > ranks;
    int64_t there = turn % ranks;
    DictionaryAttr rowSteps, columnSteps;
    if (causal) {
      rowSteps = getRowSteps(isStriped);
      columnSteps = getSteps(isStriped ? 1 : keys / ranks);
    }
    bool seesNothing = mask ? zeroRows : causal;
    if (p.chance(3))
      seesNothing = !seesNothing;
    ArrayRef<Value> of = !odd.empty() && p.chance(60) ? odd : own;
    auto part = nn::AttentionGradOp::create(
        p.local, p.loc, of[0], keysThere, valuesThere, of[1], of[2], of[3],
        Value(), mask ? getColumns(say(there)) : Value(), llvm::APFloat(kScale),
        causal, seesNothing, offset, 0, rowSteps, columnSteps,
        causal ? say(there) : 0, causal && isStriped ? ranks : 1);
    Value dQuery = p.add(p.local, part);
    if (!p.isValid)
      return;
    rectangles.push_back(part);
    dQuery = castOf(dQuery);
    ofQuery = ofQuery ? add(ofQuery, dQuery) : dQuery;
    for (auto [sum, more] :
         llvm::zip_equal(ofKeys, ValueRange(part.getResults()).drop_front()))
      sum = sum ? add(p.chance(97) ? rotate(sum) : sum, more) : Value(more);
  }
}

static void makeRing(RuleProgram &p, RuleId rule) {
  Ring ring(p);
  if (!p.isValid)
    return;
  if (p.chance(60))
    ring.makeForward();
  else
    ring.makeBackward();
  ArrayRef<Operation *> all = rule == RuleId::Rotation ? ring.rotations
                              : rule == RuleId::RectangleOfScores
                                  ? ring.rectangles
                              : rule == RuleId::TurnedSum  ? ring.sums
                              : rule == RuleId::TurnedCast ? ring.casts
                                                           : ring.formulas;
  if (all.empty() || !p.isValid)
    return;
  // The last ones, which have most terms, as often as all others.
  Operation *op = p.chance(50) ? all.back() : all[p.pick(all.size())];
  p.follow(op);
  p.ask(op, {rule});
}
static void makeRotation(RuleProgram &p) { makeRing(p, RuleId::Rotation); }
static void makeRectangle(RuleProgram &p) {
  makeRing(p, RuleId::RectangleOfScores);
}
static void makeTurnedCast(RuleProgram &p) { makeRing(p, RuleId::TurnedCast); }
static void makeTurnedSum(RuleProgram &p) { makeRing(p, RuleId::TurnedSum); }
static void makeRingFormula(RuleProgram &p) { makeRing(p, RuleId::Formula); }

ArrayRef<RuleProperty> test::getRingProperties() {
  static constexpr RuleProperty kProperties[] = {
      {RuleId::Rotation, "rotations", makeRotation},
      {RuleId::RectangleOfScores, "rectangles of scores", makeRectangle},
      {RuleId::TurnedCast, "rounded terms", makeTurnedCast},
      {RuleId::TurnedSum, "joined terms", makeTurnedSum},
      {RuleId::Formula, "what terms are combined with", makeRingFormula}};
  return kProperties;
}
