// Layers that write, cut, move and sum along sequences.

#include "Model.h"

using namespace accel;
using namespace accel::fuzz;
using namespace mlir;

static Value makeWritten(Model &m, Value x) {
  auto [first, count] = m.range(m.length);
  Value rows = m.random.chance(20) ? m.b.slice(m.earlier(), 1, first, count)
                                   : m.newRows({m.rows, count, m.width});
  return m.write(x, rows, 1, first);
}

/// Each position gets what another one has, zeros where none is.
static Value makeShifted(Model &m, Value x) {
  GraphBuilder &b = m.b;
  if (m.length < 2)
    return x;
  int64_t by = m.random.chance(70) ? 1 : m.random.between(1, m.length - 1);
  double filler = m.random.pick({0.0, 0.0, 0.25});
  if (m.random.chance(60))
    return b.pad(b.slice(x, 1, 0, m.length - by), 1, by, 0, filler);
  return b.pad(b.slice(x, 1, by, m.length - by), 1, 0, by, filler);
}

static Value makeRolled(Model &m, Value x) {
  GraphBuilder &b = m.b;
  if (m.length < 2)
    return x;
  int64_t by = m.random.between(1, m.length - 1);
  return b.concat({b.slice(x, 1, by, m.length - by), b.slice(x, 1, 0, by)}, 1);
}

static Value makeReversed(Model &m, Value x) {
  return m.b.slice(x, 1, m.length - 1, m.length, -1);
}

/// A learned prompt stands in front; what falls off at the end is cut.
static Value makePrompted(Model &m, Value x) {
  GraphBuilder &b = m.b;
  if (m.length < 2)
    return x;
  int64_t count = m.random.between(1, m.length - 1);
  Value prompt = m.newRows({m.rows, count, m.width});
  if (m.random.chance(50))
    return b.concat({prompt, b.slice(x, 1, 0, m.length - count)}, 1);
  Value whole = b.concat({prompt, x}, 1);
  Value y = m.linear(whole, m.width, m.random.chance(60));
  return b.slice(y, 1, m.random.chance(60) ? count : 0, m.length);
}

/// Parts of the sequence go ways of their own.
static Value makeChunks(Model &m, Value x) {
  GraphBuilder &b = m.b;
  if (m.length < 2)
    return x;
  int64_t first = m.random.chance(50) && m.length % 2 == 0
                      ? m.length / 2
                      : m.random.between(1, m.length - 1);
  Value left = b.slice(x, 1, 0, first);
  Value right = b.slice(x, 1, first, m.length - first);
  left = m.random.chance(60) ? m.linear(left, m.width, true) : left;
  right = m.random.chance(60) ? m.activation(right) : b.mul(right, 0.5);
  if (m.random.chance(15))
    std::swap(left, right);
  return b.concat({left, right}, 1);
}

/// Even and odd positions, apart and joined again.
static Value makePairs(Model &m, Value x) {
  GraphBuilder &b = m.b;
  if (m.length % 2)
    return x;
  int64_t half = m.length / 2;
  Value even, odd;
  if (m.random.chance(50)) {
    even = b.slice(x, 1, 0, half, 2);
    odd = b.slice(x, 1, 1, half, 2);
  } else {
    Value pairs = b.reshape(x, {m.rows, half, 2, m.width});
    even = b.reshape(b.slice(pairs, 2, 0, 1), {m.rows, half, m.width});
    odd = b.reshape(b.slice(pairs, 2, 1, 1), {m.rows, half, m.width});
  }
  odd = m.random.chance(50) ? m.linear(odd, m.width, false) : b.mul(odd, 0.5);
  switch (m.random.below(3)) {
  case 0:
    return b.concat({even, odd}, 1);
  case 1: // patches of two
    return b.reshape(
        m.linear(b.concat({even, odd}, 2), 2 * m.width, m.random.chance(50)),
        {m.rows, m.length, m.width});
  default:
    return b.reshape(b.concat({b.unsqueeze(even, 2), b.unsqueeze(odd, 2)}, 2),
                     {m.rows, m.length, m.width});
  }
}

/// A convolution, causal or not: shifted sums.
static Value makeTaps(Model &m, Value x) {
  GraphBuilder &b = m.b;
  int64_t taps = m.random.between(2, 3);
  int64_t low = m.random.chance(70) ? taps - 1 : taps / 2;
  Value padded = b.pad(x, 1, low, taps - 1 - low);
  Value sum;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Value shifted = b.slice(padded, 1, tap, m.length);
    Value term = m.random.chance(70)
                     ? b.mul(shifted, b.parameter("tap", {m.width}, 0.7))
                     : m.linear(shifted, m.width, false);
    sum = sum ? b.add(sum, term) : term;
  }
  return sum;
}

static Value makeCumulated(Model &m, Value x) {
  GraphBuilder &b = m.b;
  int64_t dim = m.random.chance(80) ? 1 : 2;
  return b.mul(
      b.make<nn::CumsumOp>(x, dim, m.random.chance(30), m.random.chance(30)),
      0.4);
}

/// What all positions have together, at each of them.
static Value makeTogether(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value y = m.random.chance(60) ? m.linear(x, m.width, m.random.chance(60)) : x;
  switch (m.random.below(5)) {
  case 0:
    y = b.reduce(nn::ReductionKind::max, y, {1}, true);
    break;
  case 1:
    y = b.reduce(nn::ReductionKind::min, y, {1}, true);
    break;
  case 2: { // of those that are kept
    Value mask = b.unsqueeze(m.keep(), 2);
    y = b.div(b.sum(b.mul(y, mask), {1}, true),
              b.binary<nn::MaxOp>(b.sum(mask, {1}, true), b.splat(1)));
    break;
  }
  default:
    y = b.mean(y, {1}, true);
  }
  if (m.random.chance(25))
    return b.sub(x, y);
  return b.broadcast(y, {m.rows, m.length, m.width});
}

/// One position's state, at all of them.
static Value makeFirst(Model &m, Value x) {
  GraphBuilder &b = m.b;
  int64_t at = m.random.pick<int64_t>({0, m.length - 1, m.length / 2});
  Value one = b.slice(x, 1, at, 1);
  if (m.random.chance(60))
    one = m.linear(one, m.width, true);
  return b.broadcast(one, {m.rows, m.length, m.width});
}

/// Merged with the width, or before the batch, or split.
static Value makeViewed(Model &m, Value x) {
  GraphBuilder &b = m.b;
  switch (m.random.below(5)) {
  case 0: { // sequence first, as torch.nn.MultiheadAttention has it
    Value turned = b.transpose(x, {1, 0, 2});
    Value y = m.linear(turned, m.width, m.random.chance(60));
    return b.transpose(m.activation(y), {1, 0, 2});
  }
  case 1: { // all of a sample in one row
    int64_t size = m.length * m.width;
    Value flat = b.reshape(x, {m.rows, size});
    Value y = b.add(flat, b.parameter("flat_b", {size}));
    return b.reshape(m.activation(y), {m.rows, m.length, m.width});
  }
  case 2: { // one product of all of a sample
    int64_t size = m.length * m.width;
    Value y = b.matmul(b.reshape(x, {m.rows, size}),
                       b.parameter("flat_w", {size, m.width}, 0.4));
    return b.broadcast(b.unsqueeze(y, 1), {m.rows, m.length, m.width});
  }
  case 3: { // channels first
    Value turned = b.transpose(x, {0, 2, 1});
    Value scale = b.parameter("channel", {m.width, 1}, 0.3, 1);
    return b.transpose(m.activation(b.mul(turned, scale)), {0, 2, 1});
  }
  default: { // positions of all samples in one dimension, sequence major
    Value flat =
        b.reshape(b.transpose(x, {1, 0, 2}), {m.length * m.rows, m.width});
    Value y = m.linear(flat, m.width, m.random.chance(60));
    return b.transpose(b.reshape(y, {m.length, m.rows, m.width}), {1, 0, 2});
  }
  }
}

/// Ranges of the width are cut, moved, joined.
static Value makeFeatures(Model &m, Value x) {
  GraphBuilder &b = m.b;
  if (m.width < 2)
    return x;
  auto [first, count] = m.range(m.width);
  switch (m.random.below(4)) {
  case 0:
    return m.write(
        x, b.broadcast(b.parameter("part", {count}), {m.rows, m.length, count}),
        2, first);
  case 1: // positions beside what they have
    return b.concat({b.slice(x, 2, 1, m.width - 1),
                     b.broadcast(b.parameter("beside", {m.length, 1}),
                                 {m.rows, m.length, 1})},
                    2);
  case 2:
    return b.concat({b.slice(x, 2, first, m.width - first),
                     b.slice(x, 2, 0, m.width - (m.width - first))},
                    2);
  default:
    return m.linear(b.concat({x, m.earlier()}, 2), m.width, true);
  }
}

void fuzz::addSequences(SmallVectorImpl<Layer> &layers) {
  layers.append({{"written sequence", 6, false, makeWritten},
                 {"shifted", 4, false, makeShifted},
                 {"rolled", 3, false, makeRolled},
                 {"reversed", 2, false, makeReversed},
                 {"prompted", 4, false, makePrompted},
                 {"chunks", 3, false, makeChunks},
                 {"pairs", 3, false, makePairs},
                 {"convolution", 3, false, makeTaps},
                 {"cumulated", 2, false, makeCumulated},
                 {"together", 5, false, makeTogether},
                 {"first", 2, false, makeFirst},
                 {"viewed", 4, false, makeViewed},
                 {"features", 3, false, makeFeatures}});
}
