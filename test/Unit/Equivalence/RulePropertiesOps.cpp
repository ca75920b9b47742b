// Programs of one op of many dimensions on pieces of what the logical program's
// op reads: attention, norms, losses, and what picks by index or by group.

#include "RuleProperties.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

static void askOp(RuleProgram &p, Operation *op, ArrayRef<Value> operands) {
  if (!p.isValid)
    return;
  if (Operation *made = mirror(p, op, operands))
    p.ask(made, {RuleId::Map});
}

/// Axes that another dimension has, or that are terms, taken from the others.
static void keepOnce(Piece &piece) {
  llvm::SmallDenseSet<StringAttr> used(piece.partial.begin(),
                                       piece.partial.end());
  for (Dim &dim : piece.dims)
    llvm::erase_if(dim.axes,
                   [&](StringAttr axis) { return !used.insert(axis).second; });
}

static void makeLayerNorm(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 3);
  int64_t dim = p.pick(shape.size());
  ArrayRef<int64_t> normed = ArrayRef(shape).drop_front(dim);
  Value a = p.takeWhole(shape), scale = p.takeWhole(normed),
        bias = p.chance(50) ? p.takeWhole(normed) : Value();
  Value made =
      p.make<nn::LayerNormOp>(p.whole, a, scale, bias, dim, llvm::APFloat(0.5));
  Piece piece = p.pickPiece(a, {10, 8, 4, 5, 3, 0});
  if (p.chance(80))
    for (Dim &each : MutableArrayRef(piece.dims).drop_front(dim))
      each = Dim();
  SmallVector<Value> operands = {p.take(piece)};
  for (Value value : {scale, bias})
    if (value) {
      Piece of = p.pickPiece(value, {8, 5, 2, 3, 2, 0});
      if (p.chance(90))
        of.dims.assign(normed.size(), Dim());
      operands.push_back(p.take(of));
    }
  askOp(p, made.getDefiningOp(), operands);
}

static void makeCrossEntropy(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 2);
  int64_t classes = p.pickOf<int64_t>({1, 2, 4});
  Value labels = p.takeWhole(shape, p.whole.getI64Type(), classes);
  shape.push_back(classes);
  Value logits = p.takeWhole(shape);
  Value made = p.make<nn::CrossEntropyOp>(
      p.whole, logits, labels, p.chance(30) ? p.pick(classes) : -100);
  Piece piece = p.pickPiece(logits, {8, 8, 4, 6, 3, 0});
  if (p.chance(85))
    piece.dims.back() = Dim();
  Piece of = p.likewise(piece, labels);
  of.partial.clear();
  of.dims.pop_back();
  if (p.chance(12)) {
    of = p.pickPiece(labels, {0, 8, 4, 6, 3, 0});
    of.partial.clear();
  }
  askOp(p, made.getDefiningOp(), {p.take(piece), p.take(of)});
}

static void makeTopK(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 3), to(shape);
  to.back() = 1 + p.pick(shape.back());
  Value a = p.takeWhole(shape);
  Value made = p.make<nn::TopKOp>(
      p.whole, RankedTensorType::get(to, p.whole.getI64Type()), a, to.back(),
      p.chance(50));
  Piece piece = p.pickPiece(a, {10, 8, 4, 6, 3, 0});
  if (p.chance(80))
    piece.dims.back() = Dim();
  askOp(p, made.getDefiningOp(), {p.take(piece)});
}

static void makeGatherNd(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(2, 3);
  int64_t batch = p.pick(2), parts = 1 + p.pick(shape.size() - batch);
  SmallVector<int64_t> at(shape.begin(), shape.begin() + batch);
  if (p.chance(70))
    at.push_back(p.pickOf<int64_t>({1, 2, 4}));
  at.push_back(parts);
  int64_t least = shape[batch];
  for (int64_t part = 0; part < parts; ++part)
    least = std::min(least, shape[batch + part]);
  Value table = p.takeWhole(shape),
        indices = p.takeWhole(at, p.whole.getI64Type(), least,
                              p.chance(40) ? -least : 0);
  SmallVector<int64_t> to(at.begin(), at.end() - 1);
  to.append(shape.begin() + batch + parts, shape.end());
  Value made = p.make<nn::GatherNdOp>(p.whole, RankedTensorType::get(to, p.f64),
                                      table, indices, uint64_t(batch));
  Piece piece = p.pickPiece(table, {20, 5, 3, 5, 3, 0}),
        where = p.pickPiece(indices, {0, 5, 3, 5, 3, 0});
  where.partial.clear();
  if (p.chance(80))
    for (int64_t part = 0; part < parts; ++part)
      piece.dims[batch + part] = Dim();
  if (p.chance(85))
    where.dims.back() = Dim();
  for (int64_t dim = 0; dim < batch && p.chance(85); ++dim)
    where.dims[dim] = piece.dims[dim];
  keepOnce(where);
  askOp(p, made.getDefiningOp(), {p.take(piece), p.take(where)});
}

/// What is added to tables of which each batch has its own indices.
static void makeBatchedScatter(RuleProgram &p) {
  int64_t batch = p.pickOf<int64_t>({2, 4}),
          rows = p.pickOf<int64_t>({2, 3, 4}),
          count = p.pickOf<int64_t>({1, 2, 4}),
          columns = p.pickOf<int64_t>({1, 2});
  Value table = p.takeWhole({batch, rows, columns}),
        indices = p.takeWhole({batch, count}, p.whole.getI64Type(), rows,
                              p.chance(40) ? -rows : 0),
        updates = p.takeWhole({batch, count, columns});
  bool isZero = p.chance(50);
  if (isZero)
    table = p.constant(p.whole, cast<RankedTensorType>(table.getType()), 0);
  Value made = p.make<nn::ScatterAddOp>(p.whole, table.getType(), table,
                                        indices, updates, 1, 1);
  Piece added = p.pickPiece(updates, {25, 5, 3, 4, 3, 0});
  Piece where = p.likewise(added, indices);
  where.dims.resize(2);
  where.partial.clear();
  if (p.chance(10)) {
    where = p.pickPiece(indices, {0, 5, 3, 5, 3, 0});
    where.partial.clear();
  }
  Value y = p.take(added), i = p.take(where), x;
  SmallVector<int64_t> held = {shapeOf(y)[0], rows, shapeOf(y)[2]};
  if (isZero) {
    x = p.constant(p.local, RankedTensorType::get(held, p.f64), 0);
  } else {
    Piece onto = p.likewise(added, table);
    onto.dims[1] = Dim();
    if (p.chance(20))
      onto = p.pickPiece(table, {25, 5, 3, 4, 3, 0});
    x = p.take(onto);
  }
  askOp(p, made.getDefiningOp(), {x, i, y});
}

/// Rows and their groups, of both of these.
static void makeGrouped(RuleProgram &p) {
  int64_t rows = p.pickOf<int64_t>({2, 4, 6}),
          inner = p.pickOf<int64_t>({1, 2, 4}),
          columns = p.pickOf<int64_t>({1, 2, 4}),
          count = p.pickOf<int64_t>({1, 2, 4});
  bool isGradient = p.chance(50), isTransposed = p.chance(40);
  Value a = p.takeWhole({rows, inner}),
        groups = p.takeWhole({rows}, p.whole.getI64Type(), count,
                             p.chance(50) ? -1 : 0);
  Piece first = p.pickPiece(a, {20, 8, 8, 5, 3, 0});
  Piece of = p.likewise(first, groups);
  of.partial.clear();
  of.dims.resize(1);
  if (p.chance(12)) {
    of = p.pickPiece(groups, {0, 8, 5, 5, 3, 0});
    of.partial.clear();
  }
  Value b, made;
  Piece second;
  if (isGradient) {
    b = p.takeWhole({rows, columns});
    made = p.make<nn::GroupedMatmulGradOp>(p.whole, a, b, groups, count);
    second = p.pickPiece(b, {20, 8, 5, 5, 3, 0});
    if (p.chance(85))
      second.dims[0] = first.dims[0];
  } else {
    SmallVector<int64_t> shape = {count, inner, columns};
    if (isTransposed)
      std::swap(shape[1], shape[2]);
    b = p.takeWhole(shape);
    made = p.make<nn::GroupedMatmulOp>(p.whole, a, b, groups, isTransposed);
    second = p.pickPiece(b, {20, 8, 5, 5, 3, 0});
    if (p.chance(80))
      second.dims[0] = Dim();
    if (p.chance(80))
      second.dims[isTransposed ? 2 : 1] = first.dims[1];
  }
  if (p.chance(60))
    second.partial.clear();
  if (p.chance(90))
    keepOnce(second);
  askOp(p, made.getDefiningOp(), {p.take(first), p.take(second), p.take(of)});
}

/// Any of the three ops of convolutions, with groups or without: pieces of the
/// dimensions that its operands share are mostly the same.
static void makeConvolution(RuleProgram &p) {
  enum { Sample, Group, Out, In, Count };
  int64_t sizes[Count];
  for (int64_t &size : sizes)
    size = p.pickOf<int64_t>({1, 2, 4});
  bool hasGroups = p.chance(50);
  int kind = p.pick(3);
  auto list = [&](std::initializer_list<int> dims) {
    SmallVector<int> leading;
    for (int dim : dims)
      if (dim != Group || hasGroups)
        leading.push_back(dim);
    return leading;
  };
  auto input = list({Sample, Group, In}), weight = list({Group, Out, In}),
       output = list({Sample, Group, Out});
  int64_t length = p.pickOf<int64_t>({2, 4}),
          window = p.pickOf<int64_t>({1, 2});
  auto take = [&](ArrayRef<int> leading, int64_t space) {
    SmallVector<int64_t> shape;
    for (int dim : leading)
      shape.push_back(sizes[dim]);
    shape.push_back(space);
    return p.takeWhole(shape);
  };
  SmallVector<int64_t> strides{p.pickOf<int64_t>({1, 2})}, dilations{1},
      low{p.pickOf<int64_t>({0, 1})};
  int64_t positions = length / strides[0];
  ArrayRef<int> ofLhs = kind == 1 ? output : input,
                ofRhs = kind == 2 ? output : weight;
  Value lhs = take(ofLhs, kind == 1 ? positions : length),
        rhs = take(ofRhs, kind == 2 ? positions : window), made;
  if (kind == 0)
    made = p.make<nn::ConvOp>(p.whole, lhs, rhs, ArrayRef(positions), strides,
                              dilations, low);
  else if (kind == 1)
    made = p.make<nn::ConvInputGradOp>(p.whole, lhs, rhs, ArrayRef(length),
                                       strides, dilations, low);
  else
    made = p.make<nn::ConvWeightGradOp>(p.whole, lhs, rhs, ArrayRef(window),
                                        strides, dilations, low);
  Piece first = p.pickPiece(lhs, {20, 8, 6, 5, 3, 0}),
        second = p.pickPiece(rhs, {20, 8, 6, 5, 3, 0});
  if (p.chance(80))
    first.dims.back() = second.dims.back() = Dim();
  for (auto [at, dim] : llvm::enumerate(ofRhs))
    if (const int *other = llvm::find(ofLhs, dim);
        other != ofLhs.end() && p.chance(85))
      second.dims[at] = first.dims[other - ofLhs.begin()];
  if (p.chance(60))
    second.partial.clear();
  if (p.chance(90))
    keepOnce(second);
  askOp(p, made.getDefiningOp(), {p.take(first), p.take(second)});
}

namespace {
/// What an attention of the program reads, and pieces of it.
struct Attention {
  explicit Attention(RuleProgram &p);
  Piece pickRows(RuleProgram &p, Value whole);
  DictionaryAttr getRowSteps(RuleProgram &p);

  Value query, key, value, mask;
  Piece rows, keys, values, columns;
  bool causal;
  llvm::APFloat scale{0.0625};
  int64_t offset;
};
} // namespace

Attention::Attention(RuleProgram &p) {
  int64_t batch = p.pickOf<int64_t>({1, 2}),
          keyHeads = p.pickOf<int64_t>({1, 2, 4}),
          heads = keyHeads * p.pickOf<int64_t>({1, 2, 4}),
          size = p.pickOf<int64_t>({1, 2, 4}),
          count = p.chance(60) ? size : p.pickOf<int64_t>({1, 2, 4}),
          depth = 1 + p.pick(2), width = p.pickOf<int64_t>({1, 2, 4});
  causal = p.chance(50);
  offset = causal && p.chance(30) ? p.pick(3) : 0;
  query = p.takeWhole({batch, heads, size, depth});
  key = p.takeWhole({batch, keyHeads, count, depth});
  value = p.takeWhole({batch, keyHeads, count, width});
  if (p.chance(45))
    mask = p.takeWhole({p.chance(50) ? batch : 1, p.chance(50) ? heads : 1,
                        p.chance(70) ? size : 1, count},
                       p.chance(50) ? Type(p.whole.getI1Type()) : p.f64);
  rows = p.pickPiece(query, {6, 6, 3, 5, 3, 0});
  if (p.chance(90))
    rows.dims[3] = Dim();
  // Key heads are split as query heads are, or over the first of these axes.
  keys = p.pickPiece(key, {4, 4, 2, 2, 2, 0});
  values = p.pickPiece(value, {10, 4, 2, 2, 2, 0});
  for (Piece *piece : {&keys, &values}) {
    if (p.chance(94))
      piece->dims[0] = rows.dims[0];
    if (p.chance(94))
      piece->dims[1] = rows.dims[1];
    if (p.chance(94))
      piece->dims[2] = Dim();
    Dim &shared = piece->dims[1];
    if (keyHeads != heads) { // an order is one of as many elements
      shared.order.clear();
      shared.parts = {};
    }
    while (!shared.axes.empty() && p.chance(40))
      shared.axes.pop_back();
  }
  if (p.chance(94))
    keys.dims[3] = Dim();
  if (p.chance(90))
    values.dims[1] = keys.dims[1];
  keepOnce(keys);
  keepOnce(values);
  if (!mask)
    return;
  columns = p.pickPiece(mask, {3, 3, 1, 2, 2, 0});
  if (p.chance(95))
    columns.dims.assign(4, Dim());
  for (unsigned dim = 0; dim < 3; ++dim)
    if (shapeOf(mask)[dim] == shapeOf(query)[dim] && p.chance(96))
      columns.dims[dim] = rows.dims[dim];
  columns.partial.clear();
  keepOnce(columns);
}

/// Of what has a query's rows.
Piece Attention::pickRows(RuleProgram &p, Value whole) {
  Piece piece = p.likewise(rows, whole);
  piece.dims.resize(shapeOf(whole).size());
  if (piece.dims.size() == 4)
    piece.dims[3] = Dim();
  piece.partial.clear();
  if (p.chance(3))
    std::swap(piece.dims[1], piece.dims[2]);
  return piece;
}

/// What says where a rank's rows are, most of the time.
DictionaryAttr Attention::getRowSteps(RuleProgram &p) {
  if (!causal || p.chance(4))
    return {};
  Builder builder(p.whole.getContext());
  SmallVector<NamedAttribute> steps;
  int64_t step = p.getShape(rows)[2];
  for (StringAttr axis : llvm::reverse(rows.dims[2].axes)) {
    steps.push_back(builder.getNamedAttr(
        axis, builder.getI64IntegerAttr(p.chance(97) ? step : 1)));
    step *= p.getSize(axis);
  }
  return steps.empty() ? DictionaryAttr() : builder.getDictionaryAttr(steps);
}

/// Asks of an attention or its gradient, on a rank's pieces of the operands but
/// for the mask.
template <typename Op>
static void askOfAttention(RuleProgram &p, Attention &of, Op whole,
                           SmallVector<Value> operands) {
  if (of.mask)
    operands.push_back(p.take(of.columns));
  if (!p.isValid)
    return;
  Operation *local = mirror(p, whole, operands);
  if (!local)
    return;
  if (DictionaryAttr steps = of.getRowSteps(p))
    cast<Op>(local).setRowStepsAttr(steps);
  p.ask(local, {RuleId::Map});
}

static void makeAttention(RuleProgram &p) {
  Attention of(p);
  auto whole = nn::AttentionOp::create(
      p.whole, p.loc, of.query, of.key, of.value, of.mask, of.scale, of.causal,
      p.chance(40), of.offset, 0, nullptr, nullptr, 0, 1);
  p.add(p.whole, whole);
  askOfAttention(p, of, whole,
                 {p.take(of.rows), p.take(of.keys), p.take(of.values)});
}

static void makeAttentionGrad(RuleProgram &p) {
  Attention of(p);
  bool zeroRows = p.chance(40);
  auto forward = nn::AttentionOp::create(
      p.whole, p.loc, of.query, of.key, of.value, of.mask, of.scale, of.causal,
      zeroRows, of.offset, 0, nullptr, nullptr, 0, 1);
  Value output = p.add(p.whole, forward), logs = forward.getLogSumExp(),
        gradient = p.takeWhole(shapeOf(output)),
        ofLogs = p.chance(30) ? p.takeWhole(shapeOf(logs)) : Value();
  auto whole = nn::AttentionGradOp::create(
      p.whole, p.loc, of.query, of.key, of.value, output, logs, gradient,
      ofLogs, of.mask, of.scale, of.causal, zeroRows, of.offset, 0, nullptr,
      nullptr, 0, 1);
  p.add(p.whole, whole);
  SmallVector<Value> operands = {
      p.take(of.rows), p.take(of.keys), p.take(of.values),
      p.take(of.pickRows(p, output)), p.take(of.pickRows(p, logs))};
  Piece slopes = of.pickRows(p, gradient);
  Piece terms = p.pickPiece(gradient, {40, 0, 0, 0, 0, 0});
  for (StringAttr axis : terms.partial)
    if (llvm::none_of(slopes.dims, [&](const Dim &dim) {
          return llvm::is_contained(dim.axes, axis);
        }))
      slopes.partial.push_back(axis);
  operands.push_back(p.take(slopes));
  if (ofLogs) {
    Piece piece = of.pickRows(p, ofLogs);
    if (p.chance(85))
      piece.partial = slopes.partial;
    operands.push_back(p.take(piece));
  }
  askOfAttention(p, of, whole, std::move(operands));
}

ArrayRef<RuleProperty> test::getOpProperties() {
  static constexpr RuleProperty kProperties[] = {
      {RuleId::Map, "layer_norm", makeLayerNorm},
      {RuleId::Map, "cross_entropy", makeCrossEntropy},
      {RuleId::Map, "top_k", makeTopK},
      {RuleId::Map, "gather_nd", makeGatherNd},
      {RuleId::Map, "scatter_add by batches", makeBatchedScatter},
      {RuleId::Map, "grouped matmuls", makeGrouped},
      {RuleId::Map, "convolutions", makeConvolution},
      {RuleId::Map, "attention", makeAttention},
      {RuleId::Map, "attention_grad", makeAttentionGrad}};
  return kProperties;
}
