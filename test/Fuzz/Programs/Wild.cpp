// Layers that no model has: ops of any kind on tensors of any shape, one after
// another, and back to hidden states.

#include "Model.h"

using namespace accel;
using namespace accel::fuzz;
using namespace mlir;

namespace {
/// A tensor on its way. Dimension 0 is the batch's, and stays so where samples
/// are not to meet.
class Walk {
public:
  Walk(Model &m, Value value) : m(m), b(m.b), value(value) {}

  Value run() {
    int64_t count = m.random.between(2, 6);
    for (int64_t number = 0; number < count; ++number) {
      Value next = step();
      int64_t size = ShapedType::getNumElements(GraphBuilder::shapeOf(next));
      if (size > 0 && size <= 4096 && GraphBuilder::rankOf(next) <= 5)
        value = next;
    }
    return back();
  }

private:
  Shape shape() { return Shape(GraphBuilder::shapeOf(value)); }
  int64_t rank() { return GraphBuilder::rankOf(value); }
  /// A dimension, and seldom the batch's; none if there is no other.
  int64_t pickDim() {
    int64_t first = m.keepsRows || m.random.chance(80) ? 1 : 0;
    return rank() > first ? m.random.between(first, rank() - 1) : -1;
  }

  Value step() {
    int64_t dim = pickDim();
    if (dim < 0)
      return b.mul(b.unsqueeze(value, rank()), 1.5);
    int64_t size = shape()[dim], last = rank() - 1;
    switch (m.random.below(19)) {
    case 0:
      return m.activation(value);
    case 1: { // numbers of a smaller shape
      Shape sizes = shape();
      for (size_t at = 0; at < sizes.size(); ++at)
        sizes[at] = at == 0 || m.random.chance(40) ? 1 : sizes[at];
      sizes.erase(sizes.begin(),
                  sizes.begin() + m.random.below(m.random.pick({1, 2})));
      Value p = b.parameter("p", sizes, 0.6, 0.4);
      return m.random.chance(50) ? b.add(value, p) : b.mul(value, p);
    }
    case 2: { // any order
      Shape order = llvm::to_vector(llvm::seq<int64_t>(0, rank()));
      int64_t first = m.keepsRows || m.random.chance(70) ? 1 : 0;
      for (int64_t at = last; at > first; --at)
        std::swap(order[at], order[m.random.between(first, at)]);
      return b.transpose(value, order);
    }
    case 3: { // two dimensions in one
      int64_t first = m.keepsRows || m.random.chance(80) ? 1 : 0;
      if (rank() < first + 2)
        return value;
      int64_t at = m.random.between(first, last - 1);
      Shape merged = shape();
      merged[at] *= merged[at + 1];
      merged.erase(merged.begin() + at + 1);
      return b.reshape(value, merged);
    }
    case 4: { // one as two
      int64_t factor = m.random.pick<int64_t>({2, 2, 3, 4});
      if (size % factor)
        return value;
      Shape split = shape();
      split[dim] = m.random.chance(50) ? factor : size / factor;
      split.insert(split.begin() + dim + 1, size / split[dim]);
      return b.reshape(value, split);
    }
    case 5:
      return b.mean(value, {dim}, m.random.chance(50));
    case 6: {
      auto kind = m.random.pick({nn::ReductionKind::max, nn::ReductionKind::min,
                                 nn::ReductionKind::prod});
      if (kind == nn::ReductionKind::prod && size > 4)
        return value;
      if (kind == nn::ReductionKind::max && m.random.chance(30))
        return b.make<nn::ReduceOp>(kind, value, Shape{dim}, /*first=*/true);
      return b.reduce(kind, value, {dim}, m.random.chance(50));
    }
    case 7: {
      auto [first, count] = m.range(size);
      return b.slice(value, dim, first, count);
    }
    case 8: { // every second, or from the end
      if (m.random.chance(50))
        return b.slice(value, dim, size - 1, size, -1);
      int64_t first = size > 1 ? m.random.below(2) : 0;
      return b.slice(value, dim, first, (size - first + 1) / 2, 2);
    }
    case 9:
      return b.pad(value, dim, m.random.below(3), m.random.below(3),
                   m.random.pick({0.0, 0.0, 0.5}));
    case 10:
      return b.concat({value, b.mul(value, 0.5)}, dim);
    case 11: {
      int64_t to = m.random.between(1, 6);
      return b.matmul(value, b.parameter("m", {shape()[last], to}, 0.7));
    }
    case 12: { // repeated
      Shape wide = shape();
      wide.insert(wide.begin() + dim, m.random.between(2, 3));
      return b.broadcast(b.unsqueeze(value, dim), wide);
    }
    case 13:
      return b.softmax(value, dim);
    case 14:
      return b.make<nn::CumsumOp>(b.mul(value, 0.5), dim, m.random.chance(30),
                                  m.random.chance(30));
    case 15: {
      Shape places;
      int64_t count = m.random.between(1, 4);
      for (int64_t at = 0; at < count; ++at)
        places.push_back(m.random.between(-size, size - 1));
      return b.gather(value, b.integers(places, {count}), dim);
    }
    case 16: {
      if (rank() < 3)
        return value;
      return b.mul(b.matmul(value, value, true, false), 0.3);
    }
    case 17: { // a row at a place of each sample's own choice
      if (rank() < 2)
        return value;
      int64_t rest =
          ShapedType::getNumElements(shape()) / (shape()[0] * shape()[1]);
      Value scores =
          b.sum(b.reshape(value, {shape()[0], shape()[1], rest}), {2});
      Value places = b.make<nn::TopKOp>(scores, m.random.between(1, shape()[1]),
                                        m.random.chance(30));
      Shape tuples(GraphBuilder::shapeOf(places));
      tuples.push_back(1);
      return b.make<nn::GatherNdOp>(value, b.reshape(places, tuples),
                                    /*batch_dims=*/1);
    }
    default: { // the greater or the smaller of two
      Value other = b.mul(b.make<nn::SinOp>(value), 1.3);
      return m.random.chance(50) ? b.binary<nn::MaxOp>(value, other)
                                 : b.binary<nn::MinOp>(value, other);
    }
    }
  }

  Value back() {
    Shape hidden = {m.rows, m.length, m.width};
    bool hasRows = rank() >= 1 && shape()[0] == m.rows;
    if (!hasRows)
      return b.broadcast(
          b.reshape(b.make<nn::TanhOp>(b.meanAll(value)), {1, 1, 1}), hidden);
    int64_t rest = ShapedType::getNumElements(shape()) / m.rows;
    Value flat = b.reshape(b.make<nn::TanhOp>(value), {m.rows, rest});
    if (rest == m.length * m.width && m.random.chance(70))
      return b.reshape(flat, hidden);
    if (rest == m.length)
      return b.broadcast(b.reshape(flat, {m.rows, m.length, 1}), hidden);
    Value y = rest <= 96 && m.random.chance(60)
                  ? b.matmul(flat, b.parameter("back", {rest, m.width}, 0.4))
                  : b.mean(flat, {1}, true);
    return b.broadcast(b.unsqueeze(y, 1), hidden);
  }

  Model &m;
  GraphBuilder &b;
  Value value;
};
} // namespace

static Value makeWild(Model &m, Value x) { return Walk(m, x).run(); }

/// A recurrence, unrolled: the same weights at each position.
static Value makeRecurrent(Model &m, Value x) {
  GraphBuilder &b = m.b;
  if (m.length > 6)
    return x;
  Value in = b.parameter("in", {m.width, m.width}, 0.5);
  Value over = b.parameter("over", {m.width, m.width}, 0.5);
  Value state = b.splat(0, {m.rows, m.width});
  SmallVector<Value> states;
  for (int64_t at = 0; at < m.length; ++at) {
    Value now = b.reshape(b.slice(x, 1, at, 1), {m.rows, m.width});
    state = b.make<nn::TanhOp>(b.add(b.matmul(now, in), b.matmul(state, over)));
    states.push_back(b.unsqueeze(state, 1));
  }
  return b.concat(states, 1);
}

/// Something that the data says of each sample, at each position.
static Value makeConditioned(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value c;
  if (m.random.chance(50)) {
    c = b.gather(b.parameter("classes", {3, m.width}, 0.7),
                 b.input("class", {m.rows}, b.i64()), 0);
  } else {
    c = m.linear(b.input("c", {m.rows, 3}, b.f64()), m.width, true);
  }
  c = b.unsqueeze(c, 1);
  return m.random.chance(50) ? b.add(x, c)
                             : b.mul(x, b.add(b.make<nn::TanhOp>(c), 1.0));
}

/// What keys of another sequence, or learned ones before the sequence's own,
/// have to say.
static Value makeMemory(Model &m, Value x) {
  GraphBuilder &b = m.b;
  int64_t size = m.width / m.heads;
  auto split = [&](Value v) {
    int64_t count = GraphBuilder::shapeOf(v)[1];
    return b.transpose(b.reshape(v, {m.rows, count, m.heads, size}),
                       {0, 2, 1, 3});
  };
  Value keys, values, from;
  int64_t before = 0;
  if (m.random.chance(50)) {
    from = b.input("memory",
                   {m.rows, m.random.pick<int64_t>({2, 3, 4, 8}), m.width},
                   b.f64());
    keys = m.linear(from, m.width, true);
    values = m.linear(from, m.width, false);
  } else {
    before = m.random.between(1, 3);
    auto prefix = [&](StringRef name) {
      return b.broadcast(b.parameter(name, {1, before, m.width}),
                         {m.rows, before, m.width});
    };
    keys = b.concat({prefix("prefix_k"), m.linear(x, m.width, true)}, 1);
    values = b.concat({prefix("prefix_v"), m.linear(x, m.width, false)}, 1);
  }
  Value query = m.linear(x, m.width, true);
  Value y = b.make<nn::AttentionOp>(
      split(query), split(keys), split(values), Value(),
      llvm::APFloat(1 / std::sqrt(double(size))), /*causal=*/before > 0,
      /*zero_masked_rows=*/false, /*row_offset=*/before, /*column_offset=*/0,
      /*row_steps=*/DictionaryAttr(), /*column_steps=*/DictionaryAttr(),
      /*turn=*/0, /*stride=*/1);
  return b.reshape(b.transpose(y, {0, 2, 1, 3}), {m.rows, m.length, m.width});
}

void fuzz::addWild(SmallVectorImpl<Layer> &layers) {
  layers.append({{"wild", 10, false, makeWild},
                 {"recurrent", 2, false, makeRecurrent},
                 {"conditioned", 3, false, makeConditioned},
                 {"memory", 4, false, makeMemory}});
}
