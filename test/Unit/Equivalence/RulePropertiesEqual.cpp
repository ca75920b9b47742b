// Programs of what has no operands, of equal elements wherever they go, of
// stacks of matrices, and of what follows from what else operands are.

#include "RuleProperties.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

static Value makeDense(RuleProgram &p, OpBuilder &builder,
                       ArrayRef<int64_t> shape, ArrayRef<double> numbers) {
  auto type = RankedTensorType::get(shape, p.f64);
  return p.make<nn::ConstantOp>(builder, type,
                                DenseElementsAttr::get(type, numbers));
}

/// A counter, or a constant, of either program.
static void makeSource(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 3);
  if (p.chance(40)) {
    std::vector<double> numbers, others;
    for (int64_t count = ShapedType::getNumElements(shape); count > 0; --count)
      numbers.push_back(p.pick(2));
    others = numbers;
    if (p.chance(50))
      others[p.pick(others.size())] += 1;
    makeDense(p, p.whole, shape, numbers);
    Value made = makeDense(p, p.local, shape, others);
    p.ask(made.getDefiningOp(), {RuleId::Source});
    return;
  }
  Type element = p.pickOf<Type>(
      {p.f64, p.whole.getI64Type(), p.whole.getI32Type(),
       IntegerType::get(p.whole.getContext(), 2), p.whole.getI1Type()});
  int64_t dim = p.pick(shape.size()), start = p.pick(2);
  p.make<nn::IotaOp>(p.whole, RankedTensorType::get(shape, element), dim,
                     start);
  SmallVector<int64_t> held(shape);
  for (int64_t &size : held)
    if (p.chance(30))
      size = p.pickOf<int64_t>({1, 2, 3, 4, 6, 9});
  Value made = p.make<nn::IotaOp>(p.local, RankedTensorType::get(held, element),
                                  p.chance(90) ? dim : p.pick(shape.size()),
                                  p.chance(85) ? start : 1);
  p.ask(made.getDefiningOp(), {RuleId::Source});
}

/// Constants, moved, joined and padded; and now and then something else.
static void makeEqual(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 3);
  auto type = RankedTensorType::get(shape, p.f64);
  double number = p.pickOf({0., 1., 2., 5.});
  Value x = p.constant(p.local, type, number);
  Piece piece = p.pickPiece(p.takeWhole(shape), {30, 0, 0, 0, 0, 0});
  for (Dim &dim : piece.dims)
    dim = Dim();
  Value other = p.chance(15)
                    ? p.take(piece)
                    : p.constant(p.local, type, p.chance(70) ? number : 3.);
  for (int64_t more = 1 + p.pick(3); more > 0 && p.isValid; --more) {
    ArrayRef<int64_t> held = shapeOf(x);
    SmallVector<int64_t> zeros(held.size(), 0), ones(held.size(), 1),
        sizes(held), high(zeros), permutation;
    for (size_t dim = held.size(); dim-- > 0;)
      permutation.push_back(dim);
    int64_t dim = p.pick(held.size());
    switch (p.pick(8)) {
    case 0:
      x = p.make<nn::ReshapeOp>(
          p.local, type.clone({ShapedType::getNumElements(held), 1}), x);
      break;
    case 1:
      x = p.make<nn::TransposeOp>(p.local, x, permutation);
      break;
    case 2:
      sizes[dim] = 1 + p.pick(held[dim]);
      x = p.make<nn::SliceOp>(p.local, x, zeros, sizes, ones);
      break;
    case 3:
      sizes.insert(sizes.begin(), 2);
      x = p.make<nn::BroadcastOp>(p.local, type.clone(ArrayRef(sizes)), x);
      break;
    case 4:
    case 5:
      if (shapeOf(x) == shapeOf(other))
        x = p.make<nn::ConcatOp>(p.local, ValueRange{x, other}, dim);
      break;
    case 6:
      high[dim] = p.pick(3);
      x = p.make<nn::PadOp>(p.local, x,
                            p.constant(p.local,
                                       RankedTensorType::get({}, p.f64),
                                       p.chance(70) ? number : 4.),
                            zeros, high);
      break;
    default:
      x = p.chance(50) ? p.make<nn::NegOp>(p.local, x)
                       : p.make<nn::AddOp>(p.local, x, x);
    }
    if (p.isValid && x.getDefiningOp()->getNumOperands() > 0)
      p.ask(x.getDefiningOp(), {RuleId::Equal});
  }
}

/// Iterations on matrices, one by one and as a stack.
static void makeStack(RuleProgram &p) {
  int64_t rows = p.pickOf<int64_t>({1, 2, 3}),
          columns = p.pickOf<int64_t>({1, 2, 3}), count = 1 + p.pick(3);
  SmallVector<int64_t> matrix = {rows, columns}, row = {1, rows, columns};
  SmallVector<StringAttr> axes;
  int64_t ranks = 1;
  for (StringAttr axis : p.axes)
    if (axis != dist::MeshOp::kMicroBatchAxis && p.chance(30)) {
      axes.push_back(axis);
      ranks *= p.getSize(axis);
    }
  auto iterate = [&](OpBuilder &builder, Value x, int64_t steps,
                     double third) -> Value {
    return p.make<nn::NewtonSchulzOp>(builder, x, steps,
                                      ArrayRef<double>{0.5, -0.125, third});
  };
  int64_t steps = 1 + p.pick(2), odd = p.chance(40) ? p.pick(count) : -1;
  SmallVector<Value> inputs;
  for (int64_t number = 0; number < count; ++number) {
    Value a = p.takeWhole(matrix), x = a;
    if (p.chance(30)) { // as a view of what a rank has
      x = p.make<nn::ReshapeOp>(
          p.whole, RankedTensorType::get({rows * columns}, p.f64), a);
      x = p.make<nn::ReshapeOp>(p.whole, RankedTensorType::get(matrix, p.f64),
                                x);
    }
    iterate(p.whole, x, number == odd ? 3 - steps : steps,
            number == odd && p.chance(50) ? 0.5 : 0.25);
    Piece piece = p.pickPiece(a, {8, 0, 0, 5, 0, 0});
    if (p.chance(90))
      for (Dim &dim : piece.dims)
        dim.axes.clear();
    Value held = p.take(piece);
    inputs.push_back(p.make<nn::ReshapeOp>(
        p.local,
        RankedTensorType::get({1, shapeOf(held)[0], shapeOf(held)[1]}, p.f64),
        held));
    p.isValid &= shapeOf(inputs.back()) == shapeOf(inputs.front());
  }
  if (!p.isValid)
    return;
  if (p.chance(10))
    std::swap(inputs.front(), inputs.back());
  int64_t all =
      (count + ranks - 1) / ranks * ranks + (p.chance(20) ? ranks : 0);
  SmallVector<int64_t> shape(shapeOf(inputs.front()));
  if (shape != row)
    return;
  shape[0] = all - count;
  if (shape[0] > 0)
    inputs.push_back(p.constant(p.local, RankedTensorType::get(shape, p.f64),
                                p.chance(93) ? 0 : 1));
  Value stack = p.make<nn::ConcatOp>(p.local, ValueRange(inputs), 0);
  if (getOnlyJoined(stack.getDefiningOp()))
    return; // it is that
  shape[0] = all / ranks;
  auto part = RankedTensorType::get(shape, p.f64);
  auto dim = p.local.getI64IntegerAttr(0);
  if (!axes.empty())
    stack = p.make<dist::AllSliceOp>(p.local, part, stack, p.getMeshName(),
                                     p.getAxes(axes), dim);
  Value made = iterate(p.local, stack, p.chance(95) ? steps : 3 - steps, 0.25);
  shape[0] = all;
  if (!axes.empty())
    made = p.make<dist::AllGatherOp>(p.local, part.clone(ArrayRef(shape)), made,
                                     p.getMeshName(), p.getAxes(axes), dim,
                                     TypeAttr());
  int64_t of = p.pick(count);
  made = p.make<nn::SliceOp>(p.local, made, ArrayRef<int64_t>{of, 0, 0}, row,
                             ArrayRef<int64_t>{1, 1, 1});
  p.follow(made);
  p.ask(made.getDefiningOp(), {RuleId::Map});
}

/// Views, cuts and padding of a sum, done term by term, the terms moved between
/// ranks on the way.
static void makeFurther(RuleProgram &p) {
  SmallVector<int64_t> shape = {p.pickOf<int64_t>({2, 4}),
                                p.pickOf<int64_t>({2, 3, 4}),
                                p.pickOf<int64_t>({1, 2})};
  Value a = p.takeWhole(shape), b = p.takeWhole(shape);
  SmallVector<int64_t> chain;
  for (int64_t more = 1 + p.pick(2); more > 0; --more)
    chain.push_back(p.pickOf<int64_t>({0, 1, 2, 3, 3, 6}));
  chain.push_back(p.pick(6)); // what only moves, and then anything
  int64_t cut = p.pick(2);
  auto apply = [&](OpBuilder &builder, Value x, int64_t kind) -> Value {
    if (!p.isValid)
      return x;
    SmallVector<int64_t> held(shapeOf(x)), permutation, zeros(held.size(), 0),
        ones(held.size(), 1), high(zeros), flat;
    for (size_t dim = held.size(); dim-- > 0;)
      permutation.push_back(dim);
    auto type = cast<RankedTensorType>(x.getType());
    switch (kind) {
    case 0:
      return p.make<nn::TransposeOp>(builder, x, permutation);
    case 1:
      for (size_t dim = 0; dim < held.size(); ++dim)
        if (dim == 1 && held.size() > 2)
          flat.back() *= held[dim];
        else
          flat.push_back(held[dim]);
      return p.make<nn::ReshapeOp>(builder, type.clone(ArrayRef(flat)), x);
    case 2:
      held.insert(held.begin(), 1);
      return p.make<nn::ReshapeOp>(builder, type.clone(ArrayRef(held)), x);
    case 3:
      if (held.back() > 1) {
        zeros.back() = cut;
        held.back() -= 1;
      }
      return p.make<nn::SliceOp>(builder, x, zeros, held, ones);
    case 4:
      high.back() = 1;
      return p.make<nn::PadOp>(
          builder, x, p.constant(builder, RankedTensorType::get({}, p.f64), 0),
          zeros, high);
    case 6:
      held.insert(held.begin(), 2);
      return p.make<nn::BroadcastOp>(builder, type.clone(ArrayRef(held)), x);
    default:
      return p.make<nn::NegOp>(builder, x);
    }
  };
  Value sum = p.make<nn::AddOp>(p.whole, a, b);
  for (int64_t kind : chain)
    sum = apply(p.whole, sum, kind);
  // The program does some of it to the terms, too, for something else: where
  // it does not, terms are followed on their way.
  for (Value own : {a, b})
    for (int64_t kind : ArrayRef(chain).drop_back())
      own = apply(p.whole, own, kind);
  Piece piece = p.pickPiece(a, {40, 0, 0, 0, 0, 0});
  Value terms[] = {p.take(piece),
                   p.take(p.chance(90) ? p.likewise(piece, b)
                                       : p.pickPiece(b, {30, 0, 0, 0}))};
  SmallVector<StringAttr> over(piece.partial.begin(), piece.partial.end());
  llvm::erase_if(over, [](StringAttr axis) {
    return axis == dist::MeshOp::kMicroBatchAxis;
  });
  int64_t moved = over.empty() ? -1 : p.pick(chain.size() + 1), when = 0;
  auto reduction =
      dist::ReductionAttr::get(p.local.getContext(), dist::Reduction::sum);
  auto reduce = [&](Value x) -> Value {
    return p.make<dist::AllReduceOp>(p.local, x.getType(), reduction, x,
                                     p.getMeshName(), p.getAxes(over),
                                     TypeAttr());
  };
  int64_t added = p.chance(20) ? p.pick(chain.size()) : chain.size();
  SmallVector<Value> left(terms, terms + 2);
  for (int64_t kind : chain) {
    for (Value &term : left) {
      if (when == moved)
        term = reduce(term);
      term = apply(p.local, term, p.chance(97) ? kind : p.pick(6));
    }
    if (when++ == added && left.size() == 2 && p.isValid &&
        left[0].getType() == left[1].getType())
      left = {p.make<nn::AddOp>(p.local, left[0], left[1])};
  }
  if (!p.isValid || left.front().getType() != left.back().getType())
    return;
  if (moved == int64_t(chain.size()))
    for (Value &term : left)
      term = reduce(term);
  // Of a term it is asked where others have said nothing.
  Value made = left.front();
  if (left.size() == 2 && p.chance(30))
    made = p.make<nn::AddOp>(p.local, left[0], left[1]);
  if (!p.isValid || !made.getDefiningOp())
    return;
  p.follow(made);
  p.ask(made.getDefiningOp(), {RuleId::Map, RuleId::Distributed});
  p.isValid &= !p.isKnown(made); // else Further is not asked
  p.ask(made.getDefiningOp(), {RuleId::Further});
}

/// A constant that ranks give each other.
static void makeSent(RuleProgram &p) {
  SmallVector<StringAttr> names;
  int64_t count = 1;
  for (StringAttr axis : p.axes)
    if (axis != dist::MeshOp::kMicroBatchAxis && p.chance(60)) {
      names.push_back(axis);
      count *= p.getSize(axis);
    }
  if (names.empty()) {
    p.isValid = false;
    return;
  }
  dist::AxesAttr over = p.getAxes(names);
  SmallVector<int64_t> shape = p.pickShape(1, 3);
  int64_t dim = p.pick(shape.size()), kind = p.pick(7);
  shape[dim] *= count;
  auto type = RankedTensorType::get(shape, p.f64);
  auto resize = [&](bool isMore) {
    SmallVector<int64_t> sizes(shape);
    sizes[dim] = isMore ? sizes[dim] * count : sizes[dim] / count;
    return type.clone(ArrayRef(sizes));
  };
  Value x = p.constant(p.local, type, p.pickOf({0., 2., 3.})), made;
  auto mesh = p.getMeshName();
  auto at = p.local.getI64IntegerAttr(dim);
  auto reduction = dist::ReductionAttr::get(
      p.local.getContext(),
      p.pickOf({dist::Reduction::sum, dist::Reduction::max}));
  SmallVector<int64_t> sources;
  for (int64_t rank = 0; rank < count; ++rank)
    sources.push_back((rank + 1) % count);
  switch (kind) {
  case 0:
    made = p.make<dist::AllReduceOp>(p.local, type, reduction, x, mesh, over,
                                     TypeAttr());
    break;
  case 1:
    made = p.make<dist::ReduceScatterOp>(p.local, resize(false), reduction, x,
                                         mesh, over, at, TypeAttr());
    break;
  case 2:
    made = p.make<dist::AllGatherOp>(p.local, resize(true), x, mesh, over, at,
                                     TypeAttr());
    break;
  case 3:
    made = p.make<dist::AllSliceOp>(p.local, resize(false), x, mesh, over, at);
    break;
  case 4:
    made = p.make<dist::AllToAllOp>(p.local, type, x, mesh, over, at, at,
                                    TypeAttr());
    break;
  case 5:
    made = p.make<dist::BroadcastOp>(p.local, type, x, mesh, over,
                                     p.local.getI64IntegerAttr(0), TypeAttr());
    break;
  default:
    made = p.make<dist::PermuteOp>(p.local, type, x, mesh, over,
                                   p.local.getDenseI64ArrayAttr(sources),
                                   TypeAttr());
  }
  p.ask(made.getDefiningOp(), {RuleId::Sent});
}

ArrayRef<RuleProperty> test::getEqualProperties() {
  static constexpr RuleProperty kProperties[] = {
      {RuleId::Source, "sources", makeSource},
      {RuleId::Sent, "equal elements, sent", makeSent},
      {RuleId::Equal, "equal elements, moved", makeEqual},
      {RuleId::Stack, "stacks of matrices", makeStack},
      {RuleId::Further, "chains on terms", makeFurther}};
  return kProperties;
}
