// Programs of sums between ranks in a type of few digits, of what gradients are
// made of and of what else there is.

#include "RuleProperties.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

/// What is done to a value on its way: added, moved, cut, or something else.
static Value passOn(RuleProgram &p, Value x, Value y) {
  SmallVector<int64_t> shape(shapeOf(x)), zeros(shape.size(), 0),
      ones(shape.size(), 1), high(zeros);
  auto type = cast<RankedTensorType>(x.getType());
  switch (p.pick(10)) {
  case 0:
    return p.make<nn::TransposeOp>(p.whole, x, ArrayRef<int64_t>{1, 0});
  case 1:
    return p.make<nn::ReshapeOp>(p.whole, type.clone({shape[1], shape[0]}), x);
  case 2:
    shape[0] = 1;
    return p.make<nn::SliceOp>(p.whole, x, zeros, shape, ones);
  case 3:
    return p.make<nn::ConcatOp>(p.whole, ValueRange{x, x}, 0);
  case 4:
    high[0] = 1;
    return p.make<nn::PadOp>(
        p.whole, x, p.constant(p.whole, RankedTensorType::get({}, p.f64), 0),
        zeros, high);
  case 5: {
    Value indices = p.takeWhole({2}, p.whole.getI64Type(), 2);
    auto table = type.clone({2, shape[1]});
    Value rows = p.make<nn::SliceOp>(p.whole, x, zeros,
                                     ArrayRef<int64_t>{1, shape[1]}, ones);
    rows = p.make<nn::ConcatOp>(p.whole, ValueRange{rows, rows}, 0);
    if (p.chance(70)) // what is scattered is none
      return p.make<nn::ScatterAddOp>(
          p.whole, table, p.constant(p.whole, table, 0), indices, rows, 0, 0);
    return p.make<nn::ScatterAddOp>(p.whole, table, rows, indices,
                                    p.takeWhole({2, shape[1]}), 0, 0);
  }
  case 6:
    return p.make<nn::MulOp>(p.whole, x, p.constant(p.whole, type, 0.75));
  case 7:
    return p.make<nn::ExpOp>(p.whole, x);
  default:
    return x.getType() == y.getType() ? p.make<nn::AddOp>(p.whole, x, y)
                                      : p.make<nn::AddOp>(p.whole, x, x);
  }
}

static void makeWire(RuleProgram &p) {
  SmallVector<int64_t> shape = {p.pickOf<int64_t>({2, 4}),
                                p.pickOf<int64_t>({1, 2})};
  Value a = p.takeWhole(shape), b = p.takeWhole(shape), x = a;
  SmallVector<Value> all = {a};
  for (int64_t more = p.pick(4); more > 0 && p.isValid; --more)
    all.push_back(x = passOn(p, p.chance(80) ? x : a, b));
  if (!p.isValid)
    return;
  auto mark = [&](Value value) {
    Value marked = p.make<nn::GradientOp>(
        p.whole, value, FlatSymbolRefAttr::get(p.whole.getContext(), "w"));
    if (p.chance(80)) // the update
      p.giveOutput(p.make<nn::MulOp>(p.whole, marked, marked));
    else
      p.giveOutput(marked);
  };
  mark(x);
  if (p.chance(20))
    mark(all[p.pick(all.size())]);
  if (p.chance(25)) // and something else
    p.giveOutput(all[p.pick(all.size())]);
  Type wire = p.whole.getBF16Type(), other = p.whole.getF16Type();
  if (p.chance(93))
    p.declareWire(p.chance(93) ? wire : other);
  Piece piece = p.pickPiece(a, {90, 0, 0, 0, 0, 0});
  SmallVector<StringAttr> over(piece.partial.begin(), piece.partial.end());
  llvm::erase_if(over, [](StringAttr axis) {
    return axis == dist::MeshOp::kMicroBatchAxis;
  });
  Value held = p.take(piece);
  auto type = cast<RankedTensorType>(held.getType());
  Value made;
  if (over.empty() || p.chance(8)) {
    for (Dim &dim : piece.dims)
      if (!dim.axes.empty() && !made) {
        int64_t at = &dim - piece.dims.data();
        SmallVector<int64_t> joined(type.getShape());
        for (StringAttr axis : dim.axes)
          joined[at] *= p.getSize(axis);
        made = p.make<dist::AllGatherOp>(
            p.local, type.clone(ArrayRef(joined)), held, p.getMeshName(),
            p.getAxes(
                SmallVector<StringAttr>(dim.axes.begin(), dim.axes.end())),
            p.local.getI64IntegerAttr(at), TypeAttr::get(wire));
      }
  } else {
    made = p.make<dist::AllReduceOp>(
        p.local, type,
        dist::ReductionAttr::get(type.getContext(), piece.reduction), held,
        p.getMeshName(), p.getAxes(over), TypeAttr::get(wire));
  }
  if (made && p.isValid)
    p.accept(made.getDefiningOp());
}

ArrayRef<RuleProperty> test::getWireProperties() {
  static constexpr RuleProperty kProperties[] = {
      {RuleId::Wire, "sums in few digits", makeWire}};
  return kProperties;
}
