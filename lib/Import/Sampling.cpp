// Sampling by look-ups of the elements around each place.

#include "Sampling.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;
using P = nn::ComparePredicate;

Value import::tableOf(NodeImporter &n, Value picture) {
  if (n.hasFailed())
    return nullptr;
  SmallVector<int64_t> shape(NodeImporter::shape(picture));
  int64_t space = ShapedType::getNumElements(ArrayRef(shape).drop_front(2));
  Value rows =
      n.transpose(n.reshape(picture, {shape[0], shape[1], space}), {0, 2, 1});
  return n.reshape(rows, {shape[0] * space, shape[1]});
}

SmallVector<Tap> import::linearTaps(NodeImporter &n, Value place,
                                    int64_t size) {
  Value first = n.unary<nn::FloorOp>(place);
  Value one = n.splatLike(place, 1);
  Value rest = n.binary<nn::SubOp>(place, first);
  return {{first, n.binary<nn::SubOp>(one, rest), size},
          {n.binary<nn::AddOp>(first, one), rest, size}};
}

/// An index of an element and what of it counts; with 0 in the place of what
/// is beyond, a NaN too.
static std::pair<Value, Value> resolve(NodeImporter &n, const Tap &tap) {
  Value zero = n.splatLike(tap.place, 0);
  Value isWithin = n.binary<nn::AndOp>(
      n.compare(P::ge, tap.place, zero),
      n.compare(P::le, tap.place,
                n.splatLike(tap.place, double(tap.size - 1))));
  return {
      n.cast(n.select(isWithin, tap.place, zero), n.graph.builder.getI64Type()),
      n.select(isWithin, tap.weight, n.splatLike(tap.weight, 0))};
}

Value import::sample(NodeImporter &n, Value table, Value picture,
                     ArrayRef<SmallVector<Tap>> taps) {
  if (n.hasFailed() || !table || !picture)
    return nullptr;
  Type index = n.graph.builder.getI64Type();
  auto times = [&](Value value, int64_t factor) {
    return n.binary<nn::MulOp>(value, n.splat({}, index, double(factor)));
  };
  int64_t stride = 1;
  for (const SmallVector<Tap> &dim : taps)
    stride *= dim.front().size;
  SmallVector<int64_t> shape(NodeImporter::shape(taps.front().front().weight));
  Value first = n.reshape(times(picture, stride), {shape[0], 1});
  // Of each dimension one element: all choices, the terms of a sum.
  SmallVector<std::pair<Value, Value>> terms{{first, Value()}};
  for (const SmallVector<Tap> &dim : taps) {
    stride /= dim.front().size;
    SmallVector<std::pair<Value, Value>> next;
    for (const Tap &tap : dim) {
      auto [at, weight] = resolve(n, tap);
      for (auto [row, share] : terms)
        next.push_back({n.binary<nn::AddOp>(row, times(at, stride)),
                        share ? n.binary<nn::MulOp>(share, weight) : weight});
    }
    terms = std::move(next);
  }
  Value sum;
  shape.push_back(1);
  for (auto [row, share] : terms) {
    Value read =
        n.create<nn::GatherOp>({table, row}, n.named("dim", int64_t(0)));
    Value term = n.binary<nn::MulOp>(
        read, n.cast(n.reshape(share, shape), NodeImporter::element(table)));
    sum = sum ? n.binary<nn::AddOp>(sum, term) : term;
  }
  return sum;
}
