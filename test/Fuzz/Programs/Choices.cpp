// Layers of gathers, scatters and choices.

#include "Model.h"

using namespace accel;
using namespace accel::fuzz;
using namespace mlir;

/// Integers in [0, length): known now, or of the data.
static Value makePlaces(Model &m, ArrayRef<int64_t> shape) {
  GraphBuilder &b = m.b;
  if (shape[0] == m.rows && m.random.chance(60))
    return b.input("places", shape, b.i64());
  SmallVector<int64_t> places;
  for (int64_t at = 0; at < ShapedType::getNumElements(shape); ++at)
    places.push_back(m.random.below(m.length));
  return b.integers(places, shape);
}

/// The same places of each sample's sequence.
static Value makeGathered(Model &m, Value x) {
  SmallVector<int64_t> places;
  for (int64_t at = 0; at < m.length; ++at)
    places.push_back(m.random.chance(70) ? at : m.random.below(m.length));
  return m.b.gather(x, m.b.integers(places, {m.length}), 1);
}

/// Each sample's own places.
static Value makePicked(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value places = makePlaces(m, {m.rows, m.length, 1});
  return b.make<nn::GatherNdOp>(x, places, /*batch_dims=*/1);
}

/// One of each sample's positions (its last token).
static Value makePooled(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value place;
  if (m.random.chance(40)) { // as many as are kept, less one
    Value count = b.sum(m.keep(), {1}, true);
    place =
        b.cast(b.binary<nn::MaxOp>(b.add(count, -1.0), b.splat(0)), b.i64());
  } else {
    place = makePlaces(m, {m.rows, 1});
  }
  Value one = b.make<nn::GatherNdOp>(x, b.reshape(place, {m.rows, 1, 1}),
                                     /*batch_dims=*/1);
  if (m.random.chance(50))
    one = m.linear(one, m.width, true);
  return b.broadcast(one, {m.rows, m.length, m.width});
}

/// Rows are added at places of each sample.
static Value makeScattered(Model &m, Value x) {
  GraphBuilder &b = m.b;
  int64_t count = m.random.between(1, m.length);
  Value places = makePlaces(m, {m.rows, count});
  Value rows = m.random.chance(50)
                   ? b.slice(m.earlier(), 1, 0, count)
                   : b.broadcast(b.parameter("added", {count, m.width}),
                                 {m.rows, count, m.width});
  return b.make<nn::ScatterAddOp>(x, places, rows, /*dim=*/1,
                                  /*batch_dims=*/1);
}

/// A table by what tokens are: an embedding beside the first.
static Value makeLookup(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value of =
      m.random.chance(40) ? m.table() : b.parameter("types", {2, m.width}, 0.7);
  Value indices =
      of == m.table() ? m.ids() : b.input("types", {m.rows, m.length}, b.i64());
  if (m.random.chance(40)) // one for each sample
    indices = b.slice(indices, 1, 0, 1);
  return b.add(x, b.gather(of, indices, 0, m.random.chance(20) ? 0 : -1));
}

/// The positions of the greatest scores, and nothing else.
static Value makeBest(Model &m, Value x) {
  GraphBuilder &b = m.b;
  int64_t count = m.random.between(1, m.length);
  Value scores = b.reshape(b.matmul(x, b.parameter("score", {m.width, 1}, 0.9)),
                           {m.rows, m.length});
  Value places = b.make<nn::TopKOp>(scores, count, m.random.chance(20));
  Value picked = b.make<nn::GatherNdOp>(
      x, b.reshape(places, {m.rows, count, 1}), /*batch_dims=*/1);
  Value weights = b.make<nn::GatherNdOp>(
      scores, b.reshape(places, {m.rows, count, 1}), /*batch_dims=*/1);
  Value y = b.mul(picked, b.unsqueeze(b.make<nn::SigmoidOp>(weights), 2));
  if (m.random.chance(50)) // back to where they were
    return b.make<nn::ScatterAddOp>(x, places, m.linear(y, m.width, false),
                                    /*dim=*/1, /*batch_dims=*/1);
  return b.add(b.mul(x, 0.5), b.sum(y, {1}, true));
}

/// One of two ways for each token.
static Value makeChosen(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value score;
  switch (m.random.below(3)) {
  case 0:
    score = b.matmul(x, b.parameter("gate", {m.width, 1}, 0.9));
    break;
  case 1:
    score = b.sub(b.unsqueeze(m.keep(), 2), b.splat(0.5));
    break;
  default:
    score = b.unsqueeze(b.sub(b.cast(m.ids(), b.f64()), b.splat(2.5)), 2);
  }
  Value chosen = b.compare(nn::ComparePredicate::gt, score, b.splat(0));
  if (m.random.chance(25))
    chosen = b.make<nn::OrOp>(
        chosen, b.compare(nn::ComparePredicate::lt, score, b.splat(-0.6)));
  return b.select(chosen, m.linear(x, m.width, m.random.chance(50)),
                  m.earlier());
}

/// A code of each token's place in its row, one-hot.
static Value makeOneHot(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value classes = b.iota({1, 1, m.words}, 2);
  Value hot = b.cast(
      b.compare(nn::ComparePredicate::eq, b.unsqueeze(m.ids(), 2), classes),
      b.f64());
  return b.add(x, b.matmul(hot, m.table()));
}

void fuzz::addChoices(SmallVectorImpl<Layer> &layers) {
  layers.append({{"gathered", 3, false, makeGathered},
                 {"picked", 3, false, makePicked},
                 {"pooled", 3, false, makePooled},
                 {"scattered", 3, false, makeScattered},
                 {"lookup", 3, false, makeLookup},
                 {"best", 3, false, makeBest},
                 {"chosen", 4, false, makeChosen},
                 {"one-hot", 2, false, makeOneHot}});
}
