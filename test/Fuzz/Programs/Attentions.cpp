// Layers in which positions attend to each other.

#include "Model.h"

using namespace accel;
using namespace accel::fuzz;
using namespace mlir;

/// [rows, length, count · size] as [rows, count, length, size].
static Value splitHeads(GraphBuilder &b, Value x, int64_t count) {
  ArrayRef<int64_t> shape = GraphBuilder::shapeOf(x);
  Value split = b.reshape(x, {shape[0], shape[1], count, shape[2] / count});
  return b.transpose(split, {0, 2, 1, 3});
}

static Value joinHeads(GraphBuilder &b, Value x) {
  ArrayRef<int64_t> shape = GraphBuilder::shapeOf(x);
  return b.reshape(b.transpose(x, {0, 2, 1, 3}),
                   {shape[0], shape[2], shape[1] * shape[3]});
}

/// A mask of scores, [rows | 1, 1, length, length], of numbers or truths; null
/// for none.
static Value makeMask(Model &m) {
  GraphBuilder &b = m.b;
  int64_t n = m.length;
  Value keys = b.reshape(m.keep(), {m.rows, 1, 1, n});
  switch (m.random.below(5)) {
  case 0: // no key of padding
    return b.broadcast(b.mul(b.add(keys, -1.0), 50.0), {m.rows, 1, n, n});
  case 1:
    return b.broadcast(b.compare(nn::ComparePredicate::gt, keys, b.splat(0.5)),
                       {m.rows, 1, n, n});
  case 2: { // a window, known by position
    Value apart = b.sub(b.iota({1, 1, n, n}, 2), b.iota({1, 1, n, n}, 3));
    return b.make<nn::AndOp>(
        b.compare(nn::ComparePredicate::ge, apart, b.integer(0, {})),
        b.compare(nn::ComparePredicate::lt, apart, b.integer(2, {})));
  }
  case 3: { // slopes (ALiBi)
    Value apart = b.cast(
        b.sub(b.iota({1, m.heads, n, n}, 3), b.iota({1, m.heads, n, n}, 2)),
        b.f64());
    SmallVector<double> slopes;
    for (int64_t head = 0; head < m.heads; ++head)
      slopes.push_back(0.25 / double(head + 1));
    return b.mul(apart, b.floats(slopes, {1, m.heads, 1, 1}));
  }
  default:
    return nullptr;
  }
}

static Value attend(Model &m, Value q, Value k, Value v, Value mask,
                    bool causal) {
  double scale = 1 / std::sqrt(double(GraphBuilder::shapeOf(q).back()));
  return m.b.make<nn::AttentionOp>(
      q, k, v, mask, llvm::APFloat(scale), causal,
      /*zero_masked_rows=*/mask && m.random.chance(30), /*row_offset=*/0,
      /*column_offset=*/0, /*row_steps=*/DictionaryAttr(),
      /*column_steps=*/DictionaryAttr(), /*turn=*/0, /*stride=*/1);
}

/// The same by its parts.
static Value attendByParts(Model &m, Value q, Value k, Value v, bool causal) {
  GraphBuilder &b = m.b;
  double scale = 1 / std::sqrt(double(GraphBuilder::shapeOf(q).back()));
  Value scores = b.mul(b.matmul(q, k, false, true), scale);
  if (causal) {
    Shape shape(GraphBuilder::shapeOf(scores));
    Value sees =
        b.compare(nn::ComparePredicate::ge, b.iota({shape[2], shape[3]}, 0),
                  b.iota({shape[2], shape[3]}, 1));
    scores = b.select(sees, scores, b.splat(-1e4));
  }
  return b.matmul(b.softmax(scores, 3), v);
}

/// Adds to even and odd places their rotation by an angle of the position.
static Value rotate(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Shape shape(GraphBuilder::shapeOf(x));
  int64_t size = shape[3], half = size / 2;
  if (size % 2)
    return x;
  Value angle = b.mul(b.cast(b.iota({shape[2], size}, 0), b.f64()), 0.3);
  Value turned = b.concat(
      {b.make<nn::NegOp>(b.slice(x, 3, half, half)), b.slice(x, 3, 0, half)},
      3);
  return b.add(b.mul(x, b.make<nn::CosOp>(angle)),
               b.mul(turned, b.make<nn::SinOp>(angle)));
}

static Value makeAttention(Model &m, Value x) {
  GraphBuilder &b = m.b;
  int64_t size = m.width / m.heads;
  int64_t keyHeads = m.heads % 2 == 0 && m.random.chance(25) ? m.heads / 2
                     : m.random.chance(8)                    ? 1
                                                             : m.heads;
  Value memory = m.random.chance(10) ? m.earlier() : x;
  Value q, k, v;
  if (keyHeads == m.heads && memory == x && m.random.chance(40)) {
    Value all = m.linear(x, 3 * m.width, m.random.chance(60));
    q = b.slice(all, 2, 0, m.width);
    k = b.slice(all, 2, m.width, m.width);
    v = b.slice(all, 2, 2 * m.width, m.width);
  } else {
    bool bias = m.random.chance(50);
    q = m.linear(x, m.width, bias);
    k = m.linear(memory, keyHeads * size, bias);
    v = m.linear(memory, keyHeads * size, bias);
  }
  q = splitHeads(b, q, m.heads);
  k = splitHeads(b, k, keyHeads);
  v = splitHeads(b, v, keyHeads);
  if (m.random.chance(20)) {
    q = rotate(m, q);
    k = rotate(m, k);
  }
  bool causal = m.random.chance(60);
  Value y = keyHeads == m.heads && m.random.chance(20)
                ? attendByParts(m, q, k, v, causal)
                : attend(m, q, k, v,
                         causal && m.random.chance(70) ? Value() : makeMask(m),
                         causal);
  y = joinHeads(b, y);
  return m.random.chance(80) ? m.linear(y, m.width, m.random.chance(60)) : y;
}

/// Norm, attention, norm, MLP: a decoder's layer.
static Value makeBlock(Model &m, Value x) {
  GraphBuilder &b = m.b;
  auto norm = [&](Value h) {
    return b.layerNorm(h, b.parameter("scale", {m.width}, 0.2, 1),
                       b.parameter("shift", {m.width}), 2);
  };
  x = b.add(x, makeAttention(m, norm(x)));
  Value y = m.activation(m.linear(norm(x), m.width, true));
  return b.add(x, m.linear(y, m.width, true));
}

/// One learned row per sample attends to all positions.
static Value makePooling(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value query = b.parameter("query", {m.width, 1}, 0.8);
  Value scores = b.softmax(b.matmul(x, query), 1); // [rows, length, 1]
  Value pooled = b.sum(b.mul(x, scores), {1}, true);
  return b.broadcast(pooled, {m.rows, m.length, m.width});
}

void fuzz::addAttentions(SmallVectorImpl<Layer> &layers) {
  layers.append({{"attention", 14, false, makeAttention},
                 {"block", 6, false, makeBlock},
                 {"attention pooling", 2, false, makePooling}});
}
