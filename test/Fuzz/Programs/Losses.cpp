// Losses: of tokens, of samples, of pairs; sums, means and masked means.

#include "Model.h"

using namespace accel;
using namespace accel::fuzz;
using namespace mlir;

/// A number per token or sample as one: a mean, a sum, or one over what counts.
static Value gatherUp(Model &m, Value losses, Value counts) {
  GraphBuilder &b = m.b;
  if (counts)
    return b.div(b.sumAll(b.mul(losses, counts)), b.sumAll(counts));
  switch (m.random.below(4)) {
  case 0:
    return b.mul(b.sumAll(losses), 0.1);
  case 1: { // of each sample first
    if (GraphBuilder::rankOf(losses) < 2)
      return b.meanAll(losses);
    return b.meanAll(b.mean(losses, {1}));
  }
  default:
    return b.meanAll(losses);
  }
}

/// Logits [rows, length, words], by a head of its own or the embedding's table.
static Value makeLogits(Model &m, Value x) {
  if (m.random.chance(40))
    return m.b.matmul(x, m.table(), false, true);
  return m.linear(x, m.words, m.random.chance(50));
}

/// Labels that are not asked for are -100 where the mask says so.
static Value ignore(Model &m, Value labels, Value keep) {
  return m.b.select(m.b.compare(nn::ComparePredicate::gt, keep, m.b.splat(0.5)),
                    labels, m.b.integer(-100, {}));
}

static Value crossEntropy(Model &m, Value logits, Value labels) {
  return m.b.make<nn::CrossEntropyOp>(logits, labels, int64_t(-100));
}

/// The same by its parts.
static Value crossEntropyByParts(Model &m, Value logits, Value labels) {
  GraphBuilder &b = m.b;
  Shape shape(GraphBuilder::shapeOf(logits));
  int64_t last = shape.size() - 1;
  Value logs = b.softmax(logits, last, true);
  if (m.random.chance(50)) {
    Shape tuples(GraphBuilder::shapeOf(labels));
    tuples.push_back(1);
    return b.make<nn::NegOp>(b.make<nn::GatherNdOp>(
        logs, b.reshape(labels, tuples), /*batch_dims=*/last));
  }
  Value hot = b.cast(b.compare(nn::ComparePredicate::eq,
                               b.unsqueeze(labels, last), b.iota(shape, last)),
                     b.f64());
  return b.make<nn::NegOp>(b.sum(b.mul(logs, hot), {last}));
}

/// The next token's cross-entropy.
static Value makeTokens(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value logits = makeLogits(m, x), labels = m.ids(), counts;
  int64_t positions = m.length;
  bool masked = m.random.chance(40);
  Value keep = masked ? m.keep() : Value();
  if (masked && m.random.chance(40) && m.length > 1) {
    auto [first, count] = m.range(m.length);
    keep = m.write(keep, b.splat(0, {m.rows, count}), 1, first);
  }
  if (m.length > 1) {
    int64_t by = m.random.chance(80) ? 1 : m.random.between(1, m.length - 1);
    switch (m.random.below(4)) {
    case 0: // logits and labels are cut
      positions -= by;
      logits = b.slice(logits, 1, 0, positions);
      labels = b.slice(labels, 1, by, positions);
      keep = keep ? b.slice(keep, 1, by, positions) : keep;
      break;
    case 1: // labels are padded
      labels = b.pad(b.slice(labels, 1, by, m.length - by), 1, 0, by, -100);
      if (keep)
        keep = b.pad(b.slice(keep, 1, by, m.length - by), 1, 0, by);
      break;
    case 2: { // rolled
      auto roll = [&](Value v) {
        return b.concat(
            {b.slice(v, 1, by, m.length - by), b.slice(v, 1, 0, by)}, 1);
      };
      labels = roll(labels);
      if (keep)
        keep = m.write(roll(keep), b.splat(0, {m.rows, by}), 1, m.length - by);
      break;
    }
    default:
      break;
    }
  }
  if (keep && m.random.chance(50)) { // ignored, and not counted
    labels = ignore(m, labels, keep);
    Value isAsked =
        b.compare(nn::ComparePredicate::ne, labels, b.integer(-100, {}));
    counts = m.random.chance(80) ? b.cast(isAsked, b.f64()) : Value();
  } else {
    counts = keep;
  }
  if (m.random.chance(50)) { // rows of tokens
    logits = b.reshape(logits, {m.rows * positions, m.words});
    labels = b.reshape(labels, {m.rows * positions});
    counts = counts ? b.reshape(counts, {m.rows * positions}) : counts;
  }
  Value losses = crossEntropy(m, logits, labels);
  if (m.random.chance(10)) { // focal
    Value p = b.make<nn::ExpOp>(b.make<nn::NegOp>(losses));
    losses = b.mul(losses, b.sub(b.splat(1), p));
  }
  return gatherUp(m, losses, counts);
}

/// Logits' own logarithms of sums, squared (z-loss).
static Value makeZ(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value logits = makeLogits(m, x);
  Value top = b.reduce(nn::ReductionKind::max, logits, {2}, true);
  if (m.random.chance(70))
    top = b.make<nn::StopGradientOp>(top);
  Value sums = b.add(b.make<nn::LogOp>(b.sum(
                         b.make<nn::ExpOp>(b.sub(logits, top)), {2}, true)),
                     top);
  return gatherUp(m, b.mul(sums, sums),
                  m.random.chance(30) ? b.unsqueeze(m.keep(), 2) : Value());
}

/// [rows, size] of [rows, length, size]: one position, a mean, the greatest.
static Value pool(Model &m, Value x) {
  GraphBuilder &b = m.b;
  switch (m.random.below(6)) {
  case 0: {
    int64_t at = m.random.pick<int64_t>({0, m.length - 1});
    return b.reshape(b.slice(x, 1, at, 1),
                     {m.rows, GraphBuilder::shapeOf(x).back()});
  }
  case 1:
    return b.reduce(nn::ReductionKind::max, x, {1});
  case 2: {
    Value mask = b.unsqueeze(m.keep(), 2);
    return b.div(b.sum(b.mul(x, mask), {1}),
                 b.binary<nn::MaxOp>(b.sum(mask, {1}), b.splat(1)));
  }
  case 3:
    return b.sum(x, {1});
  default:
    return b.mean(x, {1});
  }
}

/// A head before the mean, or behind it.
static Value makeHead(Model &m, Value x, int64_t size) {
  bool bias = m.random.chance(60);
  if (m.random.chance(50))
    return pool(m, m.linear(x, size, bias));
  return m.linear(pool(m, x), size, bias);
}

/// A class of each sample.
static Value makeClasses(Model &m, Value x) {
  GraphBuilder &b = m.b;
  int64_t classes = m.random.pick<int64_t>({2, 3, 5});
  Value logits = makeHead(m, x, classes);
  Value labels = b.input("labels", {m.rows}, b.i64());
  bool byParts = m.random.chance(25);
  Value losses = byParts ? crossEntropyByParts(m, logits, labels)
                         : crossEntropy(m, logits, labels);
  if (m.random.chance(15)) // weights of classes
    losses = b.mul(losses,
                   b.gather(b.floats({0.5, 1.5}, {2}),
                            b.binary<nn::MinOp>(labels, b.integer(1, {})), 0));
  return gatherUp(m, losses, nullptr);
}

/// A number of each sample, to come near what the data says.
static Value makeScores(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value scores = b.reshape(makeHead(m, x, 1), {m.rows});
  Value losses;
  switch (m.random.below(3)) {
  case 0:
    losses =
        b.make<nn::NegOp>(b.make<nn::LogOp>(b.make<nn::SigmoidOp>(scores)));
    break;
  case 1: {
    Value apart = b.sub(scores, b.input("target", {m.rows}, b.f64()));
    losses = b.mul(apart, apart);
    break;
  }
  default:
    losses = b.make<nn::Log1pOp>(b.make<nn::ExpOp>(scores));
  }
  return gatherUp(m, losses, nullptr);
}

/// Hidden states come near what the data says.
static Value makeSquares(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value target = m.random.chance(70)
                     ? b.input("t", {m.rows, m.length, m.width}, b.f64())
                     : b.make<nn::StopGradientOp>(m.earlier());
  Value apart = b.sub(x, target);
  switch (m.random.below(4)) {
  case 0:
    return gatherUp(m, b.make<nn::AbsOp>(apart), nullptr);
  case 1: { // Huber's
    Value size = b.make<nn::AbsOp>(apart);
    Value near = b.compare(nn::ComparePredicate::lt, size, b.splat(1));
    return gatherUp(
        m, b.select(near, b.mul(b.mul(apart, apart), 0.5), b.add(size, -0.5)),
        nullptr);
  }
  default:
    return gatherUp(
        m, b.mul(apart, apart),
        m.random.chance(30)
            ? b.broadcast(b.unsqueeze(m.keep(), 2), {m.rows, m.length, m.width})
            : Value());
  }
}

static Value makeSquaredStates(Model &m, Value x) {
  Value y = m.random.chance(50) ? m.linear(x, 2, true) : x;
  return m.b.meanAll(m.b.mul(y, y));
}

static Value makeSummed(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value y = m.random.chance(50)
                ? b.matmul(x, b.parameter("read", {m.width, 1}, 0.8))
                : x;
  return gatherUp(m, y, nullptr);
}

/// Chosen against rejected samples.
static Value makePairsLoss(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value scores = b.reshape(makeHead(m, x, 1), {m.rows});
  if (m.rows % 2)
    return b.meanAll(b.mul(scores, scores));
  int64_t half = m.rows / 2;
  Value one, other;
  switch (m.random.below(3)) {
  case 0:
    one = b.slice(scores, 0, 0, half, 2);
    other = b.slice(scores, 0, 1, half, 2);
    break;
  case 1: {
    Value pairs = b.reshape(scores, {half, 2});
    one = b.slice(pairs, 1, 0, 1);
    other = b.slice(pairs, 1, 1, 1);
    break;
  }
  default:
    one = b.slice(scores, 0, 0, half);
    other = b.slice(scores, 0, half, half);
  }
  return gatherUp(m,
                  b.make<nn::NegOp>(b.make<nn::LogOp>(
                      b.make<nn::SigmoidOp>(b.sub(one, other)))),
                  nullptr);
}

/// Each sample against all others (CLIP).
static Value makeContrast(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value one = pool(m, m.linear(x, m.width, false));
  Value other = pool(m, m.earlier());
  Value logits = b.mul(b.matmul(one, other, false, true), 0.5);
  Value labels = b.iota({m.rows}, 0);
  Value loss = b.meanAll(crossEntropy(m, logits, labels));
  if (m.random.chance(50))
    loss = b.add(
        loss, b.meanAll(crossEntropy(m, b.transpose(logits, {1, 0}), labels)));
  return loss;
}

/// How evenly a router uses its experts: means over all tokens, multiplied.
static Value makeBalance(Model &m, Value x) {
  GraphBuilder &b = m.b;
  int64_t experts = 4;
  Value scores =
      b.softmax(b.matmul(b.reshape(x, {m.rows * m.length, m.width}),
                         b.parameter("router", {m.width, experts}, 0.9)),
                1);
  Value best = b.make<nn::TopKOp>(scores, int64_t(1), false);
  Value hot = b.cast(b.compare(nn::ComparePredicate::eq, best,
                               b.iota({m.rows * m.length, experts}, 1)),
                     b.f64());
  return b.mul(b.sumAll(b.mul(b.mean(hot, {0}), b.mean(scores, {0}))),
               double(experts));
}

ArrayRef<Loss> fuzz::getLosses() {
  static const Loss losses[] = {{"tokens", 10, false, makeTokens},
                                {"z", 1, false, makeZ},
                                {"classes", 5, false, makeClasses},
                                {"scores", 4, false, makeScores},
                                {"squares", 4, false, makeSquares},
                                {"squared states", 2, false, makeSquaredStates},
                                {"summed", 2, false, makeSummed},
                                {"pairs", 2, true, makePairsLoss},
                                {"contrast", 1, true, makeContrast},
                                {"balance", 1, true, makeBalance}};
  return losses;
}
