// The whole of a random model, and what its layers share.

#include "Model.h"

#include "llvm/ADT/STLExtras.h"

using namespace accel;
using namespace accel::fuzz;
using namespace mlir;

Model::Model(GraphBuilder &b, bool keepsRows, bool isQuantized)
    : b(b), random(b.random), keepsRows(keepsRows) {
  rows = random.pick<int64_t>({1, 2, 2, 3, 4, 4, 4, 6, 8, 8});
  length = random.pick<int64_t>({2, 3, 4, 4, 6, 8, 8, 12});
  heads = random.pick<int64_t>({1, 2, 2, 4});
  width = heads * random.pick<int64_t>({1, 2, 2, 3, 4});
  words = random.pick<int64_t>({5, 6, 8, 8, 11, 16});
  if (isQuantized)
    width = 16;
}

Value Model::ids() {
  if (!knownIds)
    knownIds = b.input("ids", {rows, length}, b.i64());
  return knownIds;
}

Value Model::keep() {
  if (knownKeep)
    return knownKeep;
  switch (random.below(3)) {
  case 0: // a padding mask of integers
    knownKeep = b.cast(b.input("mask", {rows, length}, b.i64()), b.f64());
    break;
  case 1: // what is no padding
    knownKeep = b.cast(b.compare(nn::ComparePredicate::ne, ids(),
                                 b.integer(0, {rows, length})),
                       b.f64());
    break;
  default:
    knownKeep = b.cast(b.compare(nn::ComparePredicate::gt,
                                 b.input("keep", {rows, length}, b.f64()),
                                 b.splat(-1, {rows, length})),
                       b.f64());
  }
  return knownKeep;
}

Value Model::table() {
  if (!knownTable)
    knownTable = b.parameter("table", {words, width}, 0.7);
  return knownTable;
}

Value Model::weight(int64_t from, int64_t to) {
  if (random.chance(15))
    for (Value weight : weights)
      if (GraphBuilder::shapeOf(weight) == ArrayRef<int64_t>({from, to}))
        return weight; // tied
  Value weight = random.chance(6) ? b.frozen("fixed", {from, to}, 0.8)
                                  : b.parameter("w", {from, to}, 0.8);
  weights.push_back(weight);
  return weight;
}

Value Model::linear(Value x, int64_t to, bool bias) {
  Shape shape(GraphBuilder::shapeOf(x));
  int64_t from = shape.back();
  Value y;
  switch (random.below(4)) {
  case 0: // torch.nn.Linear's weight
    y = b.matmul(x, weight(to, from), false, true);
    break;
  case 1: { // rows of all samples
    int64_t count = ShapedType::getNumElements(shape) / from;
    y = b.matmul(b.reshape(x, {count, from}), weight(from, to));
    if (bias && random.chance(50)) {
      y = b.add(y, b.parameter("b", {to}));
      bias = false;
    }
    shape.back() = to;
    y = b.reshape(y, shape);
    break;
  }
  default:
    y = b.matmul(x, weight(from, to));
  }
  return bias ? b.add(y, b.parameter("b", {to})) : y;
}

Value Model::activation(Value x) {
  switch (random.below(6)) {
  case 0:
    return b.make<nn::GeluOp>(
        x, random.pick({nn::GeluKind::erf, nn::GeluKind::tanh}));
  case 1:
    return b.make<nn::ReluOp>(x);
  case 2:
    return b.make<nn::TanhOp>(x);
  case 3:
    return b.mul(x, b.make<nn::SigmoidOp>(x));
  case 4:
    return b.make<nn::SigmoidOp>(x);
  default: // softplus
    return b.make<nn::Log1pOp>(b.make<nn::ExpOp>(x));
  }
}

std::pair<int64_t, int64_t> Model::range(int64_t size) {
  int64_t count =
      size < 2 || random.chance(8) ? size : random.between(1, size - 1);
  int64_t first = random.chance(40)   ? 0
                  : random.chance(30) ? size - count
                                      : random.between(0, size - count);
  return {first, count};
}

Value Model::write(Value value, Value rows, int64_t dim, int64_t first) {
  Shape shape(GraphBuilder::shapeOf(value));
  int64_t size = shape[dim], count = GraphBuilder::shapeOf(rows)[dim];
  int64_t rest = size - first - count;
  Value result;
  switch (random.below(4)) {
  case 0: { // joined again
    SmallVector<Value> parts;
    if (first)
      parts.push_back(b.slice(value, dim, 0, first));
    parts.push_back(rows);
    if (rest)
      parts.push_back(b.slice(value, dim, first + count, rest));
    return parts.size() == 1 ? rows : b.concat(parts, dim);
  }
  case 1: { // chosen by place
    Value place = b.iota(shape, dim);
    Value inside = b.make<nn::AndOp>(
        b.compare(nn::ComparePredicate::ge, place, b.integer(first, {})),
        b.compare(nn::ComparePredicate::lt, place,
                  b.integer(first + count, {})));
    return b.select(inside, b.pad(rows, dim, first, rest), value);
  }
  case 2: { // a mask known now
    SmallVector<double> outside(size, 1);
    std::fill_n(outside.begin() + first, count, 0);
    Shape sizes(shape.size(), 1);
    sizes[dim] = size;
    return b.add(b.mul(value, b.floats(outside, sizes)),
                 b.pad(rows, dim, first, rest));
  }
  default: { // what was there is taken off
    Value old = b.slice(value, dim, first, count);
    Shape places = llvm::to_vector(llvm::seq<int64_t>(first, first + count));
    result = b.make<nn::ScatterAddOp>(value, b.integers(places, {count}),
                                      b.sub(rows, old), dim,
                                      /*batch_dims=*/int64_t(0));
    return result;
  }
  }
}

Value Model::newRows(ArrayRef<int64_t> shape) {
  switch (random.below(4)) {
  case 0:
    return b.splat(random.pick({0.0, 0.0, 0.5}), shape);
  case 1: // a row for all
    return b.broadcast(b.parameter("row", {shape.back()}), shape);
  case 2: { // one for each place, the same in each sample
    Shape sizes(shape.drop_front());
    return b.broadcast(b.parameter("rows", sizes), shape);
  }
  default:
    return b.broadcast(b.parameter("null", {1, 1, shape.back()}), shape);
  }
}

Value Model::embed() {
  switch (random.below(5)) {
  case 0: // features, seldom with the sequence first
    if (random.chance(20))
      return b.transpose(
          b.input("x", {length, rows, width}, b.f64(), /*batchDim=*/"1"),
          {1, 0, 2});
    return b.input("x", {rows, length, width}, b.f64());
  case 1:
    return linear(b.input("x", {rows, length, width}, b.f64()), width, true);
  default: {
    Value x = b.gather(table(), ids(), 0, random.chance(15) ? 1 : -1);
    if (random.chance(60)) {
      Value places = b.parameter("places", {length, width});
      if (random.chance(30)) { // by position, as exporters write it
        Value position;
        if (random.chance(20)) // or as the data says, for all samples alike
          position = b.input("positions", {length}, b.i64(), "none");
        else if (random.chance(50))
          position = b.iota({length}, 0);
        else
          position = b.iota({1, length}, 1);
        places = b.gather(places, position, 0);
      }
      x = b.add(x, places);
    }
    return x;
  }
  }
}

Value Model::addLosses(Value hidden) {
  SmallVector<Value> terms;
  int64_t count = random.pick<int64_t>({1, 1, 1, 2, 2, 3});
  for (int64_t number = 0; number < count; ++number) {
    Value of = number && random.chance(40) ? earlier() : hidden;
    Value term =
        pickFamily<Loss>(random, getLosses(), keepsRows).make(*this, of);
    if (random.chance(25))
      term = b.mul(term, random.pick({0.1, 0.5, 2.0}));
    if (random.chance(5)) { // weighed by what is trained
      Value scale = b.parameter("log_var", {}, 0.3);
      term = b.add(b.mul(b.make<nn::ExpOp>(b.make<nn::NegOp>(scale)), term),
                   scale);
    }
    terms.push_back(term);
  }
  Value loss = terms[0];
  for (Value term : ArrayRef(terms).drop_front())
    loss = random.chance(15) ? b.sub(term, loss) : b.add(loss, term);
  if (random.chance(10)) { // a penalty on some parameter
    Value w = weights.empty() ? table() : random.pickFrom(weights);
    loss = b.add(loss, b.mul(b.sumAll(b.mul(w, w)), 0.01));
  }
  return loss;
}

OwningOpRef<ModuleOp> Model::build() {
  SmallVector<Layer> layers;
  addProducts(layers);
  addAttentions(layers);
  addPointwise(layers);
  addSequences(layers);
  addRows(layers);
  addChoices(layers);
  addWild(layers);
  Value hidden = embed();
  past.push_back(hidden);
  // Ranks share sequences of what attends alone.
  SmallVector<Layer> attentions;
  addAttentions(attentions);
  int64_t count = random.between(1, 5);
  int64_t attends = random.chance(55) ? random.below(count) : count;
  for (int64_t number = 0; number < count; ++number) {
    const Layer &layer = pickFamily<Layer>(
        random, number == attends ? attentions : layers, keepsRows);
    Value made = layer.make(*this, hidden);
    hidden = random.chance(40) ? b.add(hidden, made) : made;
    past.push_back(hidden);
  }
  if (random.chance(10))
    b.parameter("unused", {width, 2});
  Value loss = addLosses(hidden);
  return b.finish(loss);
}
