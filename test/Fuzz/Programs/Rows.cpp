// Layers that write, cut and move rows of the batch. What samples do to each
// other is no matter of micro-batches.

#include "Model.h"

using namespace accel;
using namespace accel::fuzz;
using namespace mlir;

static Value makeWrittenRows(Model &m, Value x) {
  auto [first, count] = m.range(m.rows);
  Value rows = m.random.chance(20) ? m.b.slice(m.earlier(), 0, first, count)
                                   : m.newRows({count, m.length, m.width});
  return m.write(x, rows, 0, first);
}

static Value makeRolledRows(Model &m, Value x) {
  GraphBuilder &b = m.b;
  if (m.rows < 2)
    return x;
  int64_t by = m.random.between(1, m.rows - 1);
  return b.concat({b.slice(x, 0, by, m.rows - by), b.slice(x, 0, 0, by)}, 0);
}

static Value makeReversedRows(Model &m, Value x) {
  return m.b.slice(x, 0, m.rows - 1, m.rows, -1);
}

/// Samples by pairs: interleaved, mixed, or one against the other.
static Value makePairedRows(Model &m, Value x) {
  GraphBuilder &b = m.b;
  if (m.rows % 2)
    return x;
  int64_t half = m.rows / 2;
  Shape shape = {m.rows, m.length, m.width};
  Value one, other;
  switch (m.random.below(3)) {
  case 0: // by steps
    one = b.slice(x, 0, 0, half, 2);
    other = b.slice(x, 0, 1, half, 2);
    break;
  case 1: { // by a view
    Value pairs = b.reshape(x, {half, 2, m.length, m.width});
    one = b.reshape(b.slice(pairs, 1, 0, 1), {half, m.length, m.width});
    other = b.reshape(b.slice(pairs, 1, 1, 1), {half, m.length, m.width});
    break;
  }
  default: // halves
    one = b.slice(x, 0, 0, half);
    other = b.slice(x, 0, half, half);
  }
  if (m.random.chance(50))
    other = b.mul(other, 0.5);
  if (m.random.chance(30))
    one = b.sub(one, other);
  if (m.random.chance(50))
    return b.concat({one, other}, 0);
  return b.reshape(b.concat({b.unsqueeze(one, 1), b.unsqueeze(other, 1)}, 1),
                   shape);
}

/// What samples have together.
static Value makeTogetherRows(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value y = m.random.chance(50) ? m.linear(x, m.width, true) : x;
  Value all = m.random.chance(80)
                  ? b.mean(y, {0}, true)
                  : b.reduce(nn::ReductionKind::max, y, {0}, true);
  if (m.random.chance(50))
    return b.sub(x, all);
  return b.broadcast(all, {m.rows, m.length, m.width});
}

/// Batch norm in training; the other one keeps running statistics, and may have
/// positions for channels.
static Value makeBatchNorm(Model &m, Value x) {
  GraphBuilder &b = m.b;
  if (m.random.chance(50)) {
    bool areLast = m.random.chance(50);
    int64_t channels = areLast ? m.width : m.length;
    Value mean = b.buffer("running_mean", {channels}),
          variance = b.buffer("running_var", {channels}, 0.5, 1);
    return b.make<nn::BatchNormOp>(x, mean, variance, areLast ? 2 : 1,
                                   llvm::APFloat(0.25), llvm::APFloat(0.05),
                                   m.random.chance(50));
  }
  Value apart = b.sub(x, b.mean(x, {0, 1}, true));
  Value variance = b.mean(b.mul(apart, apart), {0, 1}, true);
  Value y = b.mul(apart, b.make<nn::RsqrtOp>(b.add(variance, 0.05)));
  return b.add(b.mul(y, b.parameter("gamma", {m.width}, 0.2, 1)),
               b.parameter("beta", {m.width}));
}

/// Each row a factor, or a place, of its own.
static Value makeScaledRows(Model &m, Value x) {
  GraphBuilder &b = m.b;
  if (m.random.chance(50))
    return b.mul(x, b.input("scale", {m.rows, 1, 1}, b.f64()));
  Value place = b.iota({m.rows, 1, 1}, 0);
  Value chosen = b.compare(nn::ComparePredicate::lt, place,
                           b.integer(m.random.between(0, m.rows), {}));
  return b.select(chosen, b.mul(x, 0.5), x);
}

/// Rows at places known now.
static Value makePickedRows(Model &m, Value x) {
  GraphBuilder &b = m.b;
  SmallVector<int64_t> places;
  for (int64_t row = 0; row < m.rows; ++row)
    places.push_back(m.random.below(m.rows));
  return b.gather(x, b.integers(places, {m.rows}), 0);
}

/// Scores of all samples against all (contrastive).
static Value makeAcross(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value flat = b.reshape(x, {m.rows, m.length * m.width});
  Value scores = b.softmax(b.mul(b.matmul(flat, flat, false, true), 0.1), 1);
  return b.reshape(b.matmul(scores, flat), {m.rows, m.length, m.width});
}

void fuzz::addRows(SmallVectorImpl<Layer> &layers) {
  layers.append({{"written rows", 8, true, makeWrittenRows},
                 {"rolled rows", 3, true, makeRolledRows},
                 {"reversed rows", 2, true, makeReversedRows},
                 {"paired rows", 6, true, makePairedRows},
                 {"together rows", 4, true, makeTogetherRows},
                 {"batch norm", 3, true, makeBatchNorm},
                 {"scaled rows", 3, false, makeScaledRows},
                 {"picked rows", 2, true, makePickedRows},
                 {"across", 2, true, makeAcross}});
}
