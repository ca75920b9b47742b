// Programs of one op on pieces of what the logical program's op reads.

#include "RuleProperties.h"

#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

Operation *test::mirror(RuleProgram &p, Operation *op, ArrayRef<Value> operands,
                        ArrayRef<int64_t> shape) {
  Operation *made = op->clone();
  made->setOperands(ValueRange(operands));
  if (auto slice = dyn_cast<nn::SliceOp>(made)) {
    SmallVector<int64_t> sizes(slice.getSizes());
    for (auto [dim, size] : llvm::enumerate(sizes))
      if (size == shapeOf(op->getOperand(0))[dim])
        size = shapeOf(operands[0])[dim];
    slice.setSizes(sizes);
  }
  if (auto infer = dyn_cast<InferTypeOpInterface>(made);
      infer && shape.empty()) {
    SmallVector<Type> types;
    ScopedDiagnosticHandler silent(op->getContext(),
                                   [](Diagnostic &) { return success(); });
    if (failed(infer.inferReturnTypes(
            op->getContext(), op->getLoc(), made->getOperands(),
            made->getDiscardableAttrDictionary(), made->getPropertiesStorage(),
            made->getRegions(), types))) {
      made->destroy();
      p.isValid = false;
      return nullptr;
    }
    for (auto [result, type] : llvm::zip_equal(made->getResults(), types))
      result.setType(type);
  } else if (!shape.empty() || op->getNumResults() == 1) {
    Value result = made->getResult(0);
    result.setType(cast<RankedTensorType>(result.getType()).clone(shape));
  }
  p.local.insert(made);
  p.add(p.local, made);
  return made;
}

static void ask(RuleProgram &p, Operation *op, ArrayRef<Value> operands,
                ArrayRef<int64_t> shape = {}) {
  if (!p.isValid)
    return;
  if (Operation *made = mirror(p, op, operands, shape))
    p.ask(made, {RuleId::Map});
}

static void makeElementwise(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 3);
  Value a = p.takeWhole(shape), b = p.takeWhole(shape);
  auto type = cast<RankedTensorType>(a.getType());
  Value constant = p.constant(p.whole, type, p.pickOf({0., 2.})), made;
  if (p.chance(25))
    b = constant;
  bool isUnary = false;
  switch (p.pick(9)) {
  case 0:
    made = p.make<nn::NegOp>(p.whole, a);
    isUnary = true;
    break;
  case 1:
    made = p.make<nn::AbsOp>(p.whole, a);
    isUnary = true;
    break;
  case 2:
    made = p.make<nn::ExpOp>(p.whole, a);
    isUnary = true;
    break;
  case 3:
    made = p.make<nn::AddOp>(p.whole, a, b);
    break;
  case 4:
    made = p.make<nn::SubOp>(p.whole, a, b);
    break;
  case 5:
    made = p.make<nn::DivOp>(p.whole, a, b);
    break;
  case 6:
    made = p.make<nn::MaxOp>(p.whole, a, b);
    break;
  default:
    made = p.make<nn::MulOp>(p.whole, a, b);
  }
  RuleProgram::Kinds kinds;
  kinds.padding = 20;
  SmallVector<Value> operands = {p.take(p.pickPiece(a, kinds))};
  auto held = cast<RankedTensorType>(operands[0].getType());
  if (!isUnary)
    operands.push_back(b == constant
                           ? p.constant(p.local, held, p.pickOf({0., 2., 2.}))
                           : p.take(p.pickPiece(b, kinds)));
  ask(p, made.getDefiningOp(), operands);
}

static void makeSelect(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 2);
  Value which = p.takeWhole(shape, p.whole.getI1Type()), a = p.takeWhole(shape),
        b = p.takeWhole(shape);
  Value made = p.make<nn::SelectOp>(p.whole, which, a, b);
  RuleProgram::Kinds kinds;
  kinds.padding = 15;
  Piece first = p.pickPiece(a, kinds), second = p.pickPiece(b, kinds),
        third = p.likewise(first, which);
  if (p.chance(90))
    third.partial.clear();
  ask(p, made.getDefiningOp(), {p.take(third), p.take(first), p.take(second)});
}

static void makeMatmul(RuleProgram &p) {
  auto size = [&] { return p.pickOf<int64_t>({1, 2, 4, 4}); };
  int64_t m = size(), n = size(), k = size();
  bool left = p.chance(40), right = p.chance(40);
  SmallVector<int64_t> lhs = {left ? k : m, left ? m : k},
                       rhs = {right ? n : k, right ? k : n};
  if (p.chance(40)) {
    lhs.insert(lhs.begin(), size());
    if (p.chance(60))
      rhs.insert(rhs.begin(), lhs[0]);
  }
  Value a = p.takeWhole(lhs), b = p.takeWhole(rhs);
  Value made = p.make<nn::MatmulOp>(p.whole, a, b, left, right);
  RuleProgram::Kinds kinds;
  kinds.padding = 15;
  Piece first = p.pickPiece(a, kinds);
  kinds.again = 0;
  Piece second = p.pickPiece(b, kinds);
  size_t inner = lhs.size() - (left ? 2 : 1), of = rhs.size() - (right ? 1 : 2);
  if (p.chance(75)) // the inner dimension runs along
    second.dims[of] = first.dims[inner];
  if (p.chance(75) && rhs.size() == 3)
    second.dims[0] = first.dims[0];
  if (p.chance(60))
    second.partial.clear();
  ask(p, made.getDefiningOp(), {p.take(first), p.take(second)});
}

static void makeReduce(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 3), dims;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (p.chance(50))
      dims.push_back(dim);
  Value a = p.takeWhole(shape);
  auto kind = p.pickOf({nn::ReductionKind::sum, nn::ReductionKind::max,
                        nn::ReductionKind::min, nn::ReductionKind::prod});
  SmallVector<int64_t> kept, held;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (!llvm::is_contained(dims, int64_t(dim)))
      kept.push_back(shape[dim]);
  p.make<nn::ReduceOp>(p.whole, RankedTensorType::get(kept, p.f64), kind, a,
                       dims);
  RuleProgram::Kinds kinds;
  kinds.padding = 20;
  kinds.free = 20;
  Value x = p.take(p.pickPiece(a, kinds));
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (!llvm::is_contained(dims, int64_t(dim)))
      held.push_back(shapeOf(x)[dim]);
  if (!p.isValid)
    return;
  if (p.chance(10))
    kind = nn::ReductionKind::max;
  Value local = p.make<nn::ReduceOp>(
      p.local, RankedTensorType::get(held, p.f64), kind, x, dims);
  p.ask(local.getDefiningOp(), {RuleId::Map});
}

static void makeBroadcast(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 2), to = shape;
  for (int64_t &size : to)
    if (size == 1 && p.chance(70))
      size = p.pickOf<int64_t>({2, 4});
  for (int64_t more = p.pick(2); more > 0; --more)
    to.insert(to.begin(), p.pickOf<int64_t>({2, 3, 4}));
  Value a = p.takeWhole(shape);
  p.make<nn::BroadcastOp>(p.whole, RankedTensorType::get(to, p.f64), a);
  Value x = p.take(p.pickPiece(a, {}));
  SmallVector<int64_t> held = to;
  for (size_t dim = 0; dim < to.size(); ++dim) {
    size_t lead = to.size() - shape.size();
    if (dim >= lead && shape[dim - lead] == to[dim])
      held[dim] = shapeOf(x)[dim - lead];
    else if (p.chance(50))
      held[dim] = p.pickOf<int64_t>({1, 2, 4});
  }
  if (!p.isValid)
    return;
  Value local =
      p.make<nn::BroadcastOp>(p.local, RankedTensorType::get(held, p.f64), x);
  p.ask(local.getDefiningOp(), {RuleId::Map});
}

static void makeMoving(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 3);
  Value a = p.takeWhole(shape), b = p.takeWhole(shape), made;
  SmallVector<int64_t> permutation, starts, sizes, steps, high;
  for (int64_t size : shape) {
    permutation.push_back(permutation.size());
    bool isCut = size > 1 && p.chance(40);
    starts.push_back(isCut ? p.pick(size) : 0);
    steps.push_back(isCut && p.chance(30) ? 2 : 1);
    sizes.push_back((size - starts.back() + steps.back() - 1) / steps.back());
    high.push_back(p.chance(40) ? 2 : 0);
  }
  if (p.chance(70))
    std::reverse(permutation.begin(), permutation.end());
  int kind = p.pick(6);
  int64_t dim = p.pick(shape.size());
  SmallVector<Value> operands = {p.take(p.pickPiece(a, {}))};
  switch (kind) {
  case 0:
    made = p.make<nn::TransposeOp>(p.whole, a, permutation);
    break;
  case 1:
    made = p.make<nn::SliceOp>(p.whole, a, starts, sizes, steps);
    break;
  case 2:
    made = p.make<nn::ConcatOp>(p.whole, ValueRange{a, b}, dim);
    operands.push_back(p.take(p.pickPiece(b, {})));
    break;
  case 3: {
    double number = p.pickOf({0., 0., 5.});
    auto type = RankedTensorType::get({}, p.f64);
    Value value = p.constant(p.whole, type, number);
    made = p.make<nn::PadOp>(p.whole, a, value,
                             SmallVector<int64_t>(shape.size(), 0), high);
    operands.push_back(p.constant(p.local, type, p.chance(90) ? number : 0));
    break;
  }
  case 4:
    made = p.make<nn::CumsumOp>(p.whole, a, dim, p.chance(30), p.chance(30));
    break;
  default:
    made = p.make<nn::SoftmaxOp>(p.whole, a, dim, p.chance(30));
  }
  if (p.isValid)
    ask(p, made.getDefiningOp(), operands);
}

static void makeGather(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 3), at;
  for (int64_t more = p.pick(3); more > 0; --more)
    at.push_back(p.pickOf<int64_t>({1, 2, 4}));
  int64_t dim = p.pick(shape.size());
  Value table = p.takeWhole(shape),
        indices = p.takeWhole(at, p.whole.getI64Type(), shape[dim]);
  SmallVector<int64_t> to(shape.begin(), shape.begin() + dim);
  to.append(at.begin(), at.end());
  to.append(shape.begin() + dim + 1, shape.end());
  Value made =
      p.make<nn::GatherOp>(p.whole, RankedTensorType::get(to, p.f64), table,
                           indices, uint64_t(dim), IntegerAttr(), false);
  Value x = p.take(p.pickPiece(table, {}));
  Piece where = p.pickPiece(indices, {0, 5, 5, 5, 5, 0});
  where.partial.clear();
  ask(p, made.getDefiningOp(), {x, p.take(where)});
}

static void makeScatter(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 2), at;
  for (int64_t more = p.pick(3); more > 0; --more)
    at.push_back(p.pickOf<int64_t>({1, 2, 4}));
  int64_t dim = p.pick(shape.size());
  SmallVector<int64_t> of(shape.begin(), shape.begin() + dim);
  of.append(at.begin(), at.end());
  of.append(shape.begin() + dim + 1, shape.end());
  bool isZero = p.chance(60);
  Value table = p.takeWhole(shape),
        indices = p.takeWhole(at, p.whole.getI64Type(), shape[dim]),
        updates = p.takeWhole(of);
  auto type = cast<RankedTensorType>(table.getType());
  if (isZero)
    table = p.constant(p.whole, type, 0);
  Value made =
      p.make<nn::ScatterAddOp>(p.whole, type, table, indices, updates, dim, 0);
  Piece added = p.pickPiece(updates, {30, 5, 3, 3, 3, 0}),
        where = p.pickPiece(indices, {0, 3, 3, 3, 3, 0});
  where.partial.clear();
  if (p.chance(80))
    for (size_t index = 0; index < at.size(); ++index)
      where.dims[index] = added.dims[dim + index];
  Value y = p.take(added), i = p.take(where), x;
  SmallVector<int64_t> held(shape);
  for (size_t index = 0; index < shape.size(); ++index)
    if (int64_t(index) != dim)
      held[index] =
          shapeOf(y)[int64_t(index) < dim ? index : index - 1 + at.size()];
  if (isZero)
    x = p.constant(p.local, type.clone(ArrayRef(held)), 0);
  else
    x = p.take(p.pickPiece(table, {30, 5, 3, 3, 3, 0}));
  ask(p, made.getDefiningOp(), {x, i, y}, shapeOf(x));
}

ArrayRef<RuleProperty> test::getMapProperties() {
  static constexpr RuleProperty kProperties[] = {
      {RuleId::Map, "element by element", makeElementwise},
      {RuleId::Map, "select", makeSelect},
      {RuleId::Map, "matmul", makeMatmul},
      {RuleId::Map, "reduce", makeReduce},
      {RuleId::Map, "broadcast", makeBroadcast},
      {RuleId::Map, "transpose, slice, concat, pad, cumsum, softmax",
       makeMoving},
      {RuleId::Map, "gather", makeGather},
      {RuleId::Map, "scatter_add", makeScatter}};
  return kProperties;
}
