// Programs of rows that are dealt over ranks by their groups: the numbers, what
// they fetch, what is made of it, and the way back.

#include "RuleProperties.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

namespace {
/// Rows that the ranks along axes deal, and the numbers by which they do.
struct Deal {
  explicit Deal(RuleProgram &p);
  /// A piece of rows, split as their groups are more often than not.
  Piece pickRows(RuleProgram &p, Value whole);

  SmallVector<StringAttr> axes;
  int64_t ranks = 1, own, all, numGroups, room;
  Value groups; ///< of the program's rows
  Piece piece;  ///< of them that ranks have
  Value rows, ownGroups, places;
};
} // namespace

/// The groups of rows: any, none among them or not; or what is chosen.
static Value pickDealtGroups(RuleProgram &p, int64_t rows, int64_t count) {
  Type index = p.whole.getI64Type();
  if (p.chance(50))
    return p.takeWhole({rows}, index, count, p.chance(60) ? -1 : 0);
  int64_t k = rows % 2 == 0 && count > 1 ? 1 + p.pick(2) : 1;
  SmallVector<int64_t> shape = {rows / k, k};
  auto type = RankedTensorType::get(shape, index);
  // Of 256 the last, which is -1 in 8 bits; of fewer, any.
  Value scores =
      count == 256
          ? p.make<nn::IotaOp>(
                p.whole, RankedTensorType::get({rows / k, count}, p.f64), 1, 0)
          : p.takeWhole({rows / k, count});
  Value chosen = p.make<nn::TopKOp>(p.whole, type, scores, k,
                                    count != 256 && p.chance(50));
  if (p.chance(count == 256 ? 80 : 40)) {
    Type narrow = p.pickOf<Type>({p.whole.getI8Type(), p.whole.getI32Type()});
    chosen = p.make<nn::CastOp>(
        p.whole, type, p.make<nn::CastOp>(p.whole, type.clone(narrow), chosen));
  }
  return p.make<nn::ReshapeOp>(p.whole, type.clone({rows}), chosen);
}

Deal::Deal(RuleProgram &p) {
  SmallVector<StringAttr> split;
  int64_t parts = 1;
  for (StringAttr axis : p.axes)
    if (axis != dist::MeshOp::kMicroBatchAxis && p.getSize(axis) > 1 &&
        p.chance(75)) {
      axes.push_back(axis);
      ranks *= p.getSize(axis);
    } else if (p.chance(30)) {
      split.push_back(axis);
      parts *= p.getSize(axis);
    }
  if (axes.empty()) {
    p.isValid = false;
    return;
  }
  if (p.chance(30))
    std::reverse(axes.begin(), axes.end());
  own = p.pickOf<int64_t>({1, 2, 2, 3});
  all = own * ranks * parts;
  numGroups = 256 % ranks == 0 && p.chance(25)
                  ? 256
                  : ranks * p.pickOf<int64_t>({1, 1, 2});
  room = own * ranks + p.pick(2);
  groups = pickDealtGroups(p, all, numGroups);
  split.insert(p.chance(50) ? split.begin() : split.end(), axes.begin(),
               axes.end());
  if (p.chance(15))
    std::reverse(split.begin(), split.end());
  piece.logical = groups;
  piece.dims.resize(1);
  piece.dims[0].axes.assign(split.begin(), split.end());
  if (p.chance(10) && all > 2 && all % 2 == 0)
    piece.dims[0].order = {{2, 1}, {all / 2, 2}};
  SmallVector<StringAttr> counted = axes;
  if (p.chance(8))
    std::reverse(counted.begin(), counted.end());
  auto type = RankedTensorType::get({own * ranks}, p.whole.getI64Type());
  Value joined = p.make<dist::AllGatherOp>(
      p.local, type, p.take(piece), p.getMeshName(), p.getAxes(axes),
      p.local.getI64IntegerAttr(0), TypeAttr());
  Value rank = p.make<dist::AxisIndexOp>(
      p.local, RankedTensorType::get({}, p.local.getI64Type()), p.getMeshName(),
      p.getAxes(counted));
  rows = p.make<nn::DealRowsOp>(p.local, joined, rank, numGroups, ranks, room);
  ownGroups = rows.getDefiningOp()->getResult(1);
  places = rows.getDefiningOp()->getResult(2);
}

Piece Deal::pickRows(RuleProgram &p, Value whole) {
  Piece rows = p.pickPiece(whole, {20, 4, 0, 5, 0, 0});
  auto drop = [&](auto &from) {
    llvm::erase_if(from, [&](StringAttr axis) {
      return llvm::is_contained(piece.dims[0].axes, axis);
    });
  };
  for (Dim &dim : rows.dims)
    drop(dim.axes);
  drop(rows.partial);
  rows.dims[0] = piece.dims[0];
  if (p.chance(6))
    rows.dims[0].order.clear();
  if (p.chance(6))
    std::reverse(rows.dims[0].axes.begin(), rows.dims[0].axes.end());
  return rows;
}

static Value fetch(RuleProgram &p, const Deal &deal, Value from, Value index) {
  SmallVector<int64_t> shape(shapeOf(from));
  shape[0] = shapeOf(index)[0];
  SmallVector<StringAttr> axes = deal.axes;
  if (p.chance(6))
    std::reverse(axes.begin(), axes.end());
  return p.make<dist::FetchRowsOp>(
      p.local, cast<RankedTensorType>(from.getType()).clone(shape), from, index,
      p.getMeshName(), p.getAxes(axes), TypeAttr());
}

static void makeDeal(RuleProgram &p) {
  Deal deal(p);
  if (!p.isValid)
    return;
  p.follow(deal.rows);
  p.ask(deal.rows.getDefiningOp(), {RuleId::Deal});
}

/// What is done to rows: to each by itself, or not.
static Value change(RuleProgram &p, OpBuilder &builder, int64_t kind, Value x,
                    Value y, double number) {
  bool readsBoth = kind == 1 || kind == 2 || kind == 11;
  p.isValid &= !readsBoth || x.getType() == y.getType();
  if (!p.isValid)
    return x;
  SmallVector<int64_t> shape(shapeOf(x)), zeros(shape.size(), 0),
      ones(shape.size(), 1);
  auto type = cast<RankedTensorType>(x.getType());
  switch (kind) {
  case 0:
    return p.make<nn::NegOp>(builder, x);
  case 1:
    return p.make<nn::AddOp>(builder, x, y);
  case 2:
    return p.make<nn::MulOp>(builder, x, y);
  case 3:
    return p.make<nn::AddOp>(builder, x, p.constant(builder, type, number));
  case 4:
    shape[1] = std::max<int64_t>(1, shape[1] / 2);
    return p.make<nn::SliceOp>(builder, x, zeros, shape, ones);
  case 5:
    return p.make<nn::SoftmaxOp>(builder, x, 1, false);
  case 6:
  case 7:
    shape.erase(shape.begin() + (kind == 6 ? 1 : 0));
    return p.make<nn::ReduceOp>(builder, type.clone(ArrayRef(shape)),
                                nn::ReductionKind::sum, x,
                                ArrayRef<int64_t>{kind == 6 ? 1 : 0});
  case 8:
    return p.make<nn::CumsumOp>(builder, x, 0, false, false);
  case 9:
    shape.push_back(1);
    return p.make<nn::ReshapeOp>(builder, type.clone(ArrayRef(shape)), x);
  case 10:
    return p.make<nn::TransposeOp>(builder, x, ArrayRef<int64_t>{1, 0});
  case 11:
    return p.make<nn::ConcatOp>(builder, ValueRange{x, y}, 1);
  case 12:
    shape.push_back(2);
    return p.make<nn::BroadcastOp>(
        builder, type.clone(ArrayRef(shape)),
        p.make<nn::ReshapeOp>(builder, type.clone({shape[0], shape[1], 1}), x));
  default:
    return p.make<nn::SoftmaxOp>(builder, x, 0, false);
  }
}

static void makeDealtRows(RuleProgram &p) {
  Deal deal(p);
  if (!p.isValid)
    return;
  int64_t columns = p.pickOf<int64_t>({1, 2, 4, deal.room});
  Value a = p.takeWhole({deal.all, columns}),
        b = p.takeWhole({deal.all, columns});
  int64_t kind = p.pick(14);
  double number = p.pickOf({0., 2.});
  change(p, p.whole, kind, a, b, number);
  Piece first = deal.pickRows(p, a), second = deal.pickRows(p, b);
  if (p.chance(80)) {
    second = p.likewise(first, b);
    if (kind == 2)
      second.partial.clear();
  }
  Value x = fetch(p, deal, p.take(first), deal.rows), y;
  if (p.chance(90)) {
    y = fetch(p, deal, p.take(second), deal.rows);
  } else { // each of them the same, and so wherever it is
    second = p.likewise(first, b);
    second.dims[0] = Dim();
    second.dims[0].free = true;
    y = p.take(second);
    SmallVector<int64_t> shape(shapeOf(x));
    y.setType(cast<RankedTensorType>(y.getType()).clone(shape));
  }
  Value made = change(p, p.local, kind, x, y, number);
  if (!p.isValid)
    return;
  p.follow(made);
  p.ask(made.getDefiningOp(), {RuleId::DealtRows});
}

namespace {
/// A product of rows with the matrices of their groups, or its gradient.
struct Product {
  Product(RuleProgram &p, Deal &deal);
  Value made; ///< of dealt rows
};
} // namespace

Product::Product(RuleProgram &p, Deal &deal) {
  int64_t inner = p.pickOf<int64_t>({1, 2, 4}),
          columns = p.pickOf<int64_t>({1, 2, 4});
  bool isGradient = p.chance(40), isTransposed = p.chance(30);
  Value a = p.takeWhole({deal.all, inner});
  Piece rows = deal.pickRows(p, a);
  Value x =
      p.chance(93) || isGradient
          ? fetch(p, deal, p.take(rows), deal.rows)
          : p.constant(p.local,
                       RankedTensorType::get({deal.room, inner}, p.f64), 2);
  Value groups = p.chance(95) ? deal.ownGroups : deal.rows;
  int64_t ownCount = deal.numGroups / deal.ranks;
  if (isGradient) {
    Value b = p.takeWhole({deal.all, columns});
    p.make<nn::GroupedMatmulGradOp>(p.whole, a, b, deal.groups, deal.numGroups);
    Piece others = deal.pickRows(p, b);
    if (p.chance(70))
      others.partial.clear();
    Value y = fetch(p, deal, p.take(others), deal.rows);
    made = p.make<nn::GroupedMatmulGradOp>(p.local, x, y, groups, ownCount);
    return;
  }
  SmallVector<int64_t> shape = {deal.numGroups, inner, columns};
  if (isTransposed)
    std::swap(shape[1], shape[2]);
  if (x.getDefiningOp<nn::ConstantOp>())
    a = p.constant(p.whole, cast<RankedTensorType>(a.getType()), 2);
  Value w = p.takeWhole(shape);
  p.make<nn::GroupedMatmulOp>(p.whole, a, w, deal.groups, isTransposed);
  Piece matrices = p.pickPiece(w, {10, 3, 0, 3, 0, 0});
  llvm::erase_if(matrices.partial, [&](StringAttr axis) {
    return llvm::is_contained(deal.piece.dims[0].axes, axis);
  });
  for (Dim &dim : matrices.dims)
    llvm::erase_if(dim.axes, [&](StringAttr axis) {
      return llvm::is_contained(deal.piece.dims[0].axes, axis);
    });
  if (p.chance(80)) {
    matrices.dims[isTransposed ? 2 : 1] = rows.dims[1];
    if (!rows.partial.empty())
      matrices.partial.clear();
  }
  matrices.dims[0] = Dim();
  matrices.dims[0].axes.assign(deal.axes.begin(), deal.axes.end());
  if (p.chance(8))
    std::reverse(matrices.dims[0].axes.begin(), matrices.dims[0].axes.end());
  Value held = p.take(matrices);
  p.isValid &= shapeOf(held)[isTransposed ? 2 : 1] == shapeOf(x)[1];
  if (p.isValid)
    made = p.make<nn::GroupedMatmulOp>(p.local, x, held, groups, isTransposed);
}

static void makeDealtProduct(RuleProgram &p) {
  Deal deal(p);
  if (!p.isValid)
    return;
  Product product(p, deal);
  if (!p.isValid)
    return;
  p.follow(product.made);
  p.ask(product.made.getDefiningOp(), {RuleId::DealtProduct});
}

static void makeFetch(RuleProgram &p) {
  Deal deal(p);
  if (!p.isValid)
    return;
  Value made;
  if (p.chance(45)) {
    Product product(p, deal);
    made = product.made;
  } else {
    Value a = p.takeWhole({deal.all, p.pickOf<int64_t>({1, 2})});
    made = fetch(p, deal, p.take(deal.pickRows(p, a)), deal.rows);
    int64_t kind = p.pickOf<int64_t>({0, 3, 9});
    if (p.chance(50)) {
      change(p, p.whole, kind, a, a, 2);
      made = change(p, p.local, kind, made, made, 2);
    }
  }
  if (p.isValid && shapeOf(made)[0] == deal.room && p.chance(80))
    made = fetch(p, deal, made, deal.places);
  if (!p.isValid || !made.getDefiningOp<dist::FetchRowsOp>())
    return;
  p.follow(made);
  p.ask(made.getDefiningOp(), {RuleId::Fetch});
}

ArrayRef<RuleProperty> test::getDealtProperties() {
  static constexpr RuleProperty kProperties[] = {
      {RuleId::Deal, "dealings", makeDeal},
      {RuleId::Fetch, "fetched rows", makeFetch},
      {RuleId::DealtRows, "rows that were dealt", makeDealtRows},
      {RuleId::DealtProduct, "products of dealt rows", makeDealtProduct}};
  return kProperties;
}
