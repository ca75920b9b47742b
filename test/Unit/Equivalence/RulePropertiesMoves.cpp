// Programs of collectives, of ranks' numbers and of padding.

#include "RuleProperties.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

/// Axes of more than one rank, mb aside: along it nothing is sent.
static SmallVector<StringAttr> pickAxes(RuleProgram &p, bool mayBeMicro) {
  SmallVector<StringAttr> picked;
  for (StringAttr axis : p.axes)
    if ((mayBeMicro || axis != dist::MeshOp::kMicroBatchAxis) && p.chance(60))
      picked.push_back(axis);
  if (p.chance(30))
    std::reverse(picked.begin(), picked.end());
  return picked;
}

/// A random collective on a value.
static Operation *makeCollective(RuleProgram &p, Value x, const Piece &piece) {
  auto type = cast<RankedTensorType>(x.getType());
  auto mesh = p.getMeshName();
  int64_t dim = p.pick(type.getRank()), kind = p.pick(6);
  SmallVector<StringAttr> names = pickAxes(p, kind == 3);
  // What undoes what the piece is, more often than not.
  if (p.chance(50) && (kind == 0 || kind == 1) && !piece.partial.empty())
    names.assign(piece.partial.begin(), piece.partial.end());
  if (p.chance(50) && (kind == 2 || kind == 4) && !piece.dims[dim].axes.empty())
    names.assign(piece.dims[dim].axes.end() -
                     (1 + p.pick(piece.dims[dim].axes.size())),
                 piece.dims[dim].axes.end());
  if (kind != 3)
    llvm::erase_if(names, [](StringAttr axis) {
      return axis == dist::MeshOp::kMicroBatchAxis;
    });
  if (names.empty()) {
    p.isValid = false;
    return nullptr;
  }
  int64_t count = 1;
  for (StringAttr axis : names)
    count *= p.getSize(axis);
  dist::AxesAttr over = p.getAxes(names);
  auto resize = [&](RankedTensorType type, int64_t dim, bool isMore) {
    SmallVector<int64_t> shape(type.getShape());
    p.isValid &= isMore || shape[dim] % count == 0;
    shape[dim] = isMore ? shape[dim] * count : shape[dim] / count;
    return type.clone(ArrayRef(shape));
  };
  auto reduction = dist::ReductionAttr::get(
      type.getContext(), p.pickOf({dist::Reduction::sum, dist::Reduction::sum,
                                   dist::Reduction::max}));
  auto at = p.local.getI64IntegerAttr(dim);
  Value made;
  switch (kind) {
  case 0:
    made = p.make<dist::AllReduceOp>(p.local, type, reduction, x, mesh, over,
                                     TypeAttr());
    break;
  case 1:
    made =
        p.make<dist::ReduceScatterOp>(p.local, resize(type, dim, false),
                                      reduction, x, mesh, over, at, TypeAttr());
    break;
  case 2:
    made = p.make<dist::AllGatherOp>(p.local, resize(type, dim, true), x, mesh,
                                     over, at, TypeAttr());
    break;
  case 3:
    made = p.make<dist::AllSliceOp>(p.local, resize(type, dim, false), x, mesh,
                                    over, at);
    break;
  case 4: {
    int64_t split = p.pick(type.getRank());
    made = p.make<dist::AllToAllOp>(
        p.local, resize(resize(type, split, false), dim, true), x, mesh, over,
        p.local.getI64IntegerAttr(split), at, TypeAttr());
    break;
  }
  default: {
    SmallVector<int64_t> sources;
    for (int64_t rank = 0; rank < count; ++rank)
      sources.push_back(rank);
    if (p.chance(60) && names.size() > 1) { // one axis for another
      int64_t inner = p.getSize(names.back());
      for (int64_t rank = 0; rank < count; ++rank)
        sources[rank] = rank % inner * (count / inner) + rank / inner;
    } else {
      for (int64_t &source : sources)
        std::swap(source, sources[p.pick(count)]);
    }
    made = p.make<dist::PermuteOp>(p.local, type, x, mesh, over,
                                   p.local.getDenseI64ArrayAttr(sources),
                                   TypeAttr());
  }
  }
  return made.getDefiningOp();
}

static void makeMoved(RuleProgram &p) {
  Value a = p.takeWhole(p.pickShape(1, 3));
  Piece piece = p.pickPiece(a, {50, 10, 5, 5, 5, 0});
  if (Operation *op = makeCollective(p, p.take(piece), piece); p.isValid)
    p.ask(op, {RuleId::Moved});
}

static void makeMovedViews(RuleProgram &p) {
  Value a = p.takeWhole(p.pickShape(1, 3));
  Piece piece = p.pickPiece(a, {40, 5, 0, 15, 8, 0});
  if (Operation *op = makeCollective(p, p.take(piece), piece); p.isValid)
    p.ask(op, {RuleId::MovedViews});
}

static void makeMovedTerms(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 2);
  Value a = p.takeWhole(shape), b = p.takeWhole(shape);
  Piece piece = p.pickPiece(a, {70, 0, 0, 5, 5, 0});
  std::vector<std::vector<Piece>> terms = {{piece}};
  if (p.chance(80))
    terms.push_back({p.likewise(piece, b)});
  // The largest of a sum's terms: said of one alone.
  if (terms.size() > 1 && piece.reduction != dist::Reduction::sum &&
      p.chance(60))
    return;
  if (Operation *op = makeCollective(p, p.takeTerms(terms), piece); p.isValid)
    p.ask(op, {RuleId::MovedTerms});
}

static void makeCounter(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 2);
  int64_t dim = p.pick(shape.size());
  SmallVector<StringAttr> names = pickAxes(p, true);
  int64_t count = 1;
  for (StringAttr axis : names)
    count *= p.getSize(axis);
  Type element = p.pickOf<Type>(
      {p.whole.getI64Type(), p.whole.getI64Type(), p.whole.getI8Type(),
       IntegerType::get(p.whole.getContext(), 2), p.whole.getI1Type()});
  auto wholeType = RankedTensorType::get(shape, element);
  p.make<nn::IotaOp>(p.whole, wholeType, dim, 0);
  SmallVector<int64_t> held(shape);
  if (names.empty() || held[dim] % count != 0) {
    p.isValid = false;
    return;
  }
  held[dim] /= count;
  auto type = RankedTensorType::get(held, element),
       scalar = RankedTensorType::get({}, element);
  Value index = p.make<dist::AxisIndexOp>(
      p.local, RankedTensorType::get({}, p.local.getI64Type()), p.getMeshName(),
      p.getAxes(names));
  int64_t by = p.chance(80) ? held[dim] : p.pickOf<int64_t>({1, 2, 3});
  Value narrow = index;
  if (element != p.local.getI64Type())
    narrow = p.make<nn::CastOp>(p.local, scalar, index);
  Value wide = p.make<nn::BroadcastOp>(p.local, type, narrow);
  Value factor = p.constant(p.local, type, double(by));
  Value begin = p.make<nn::MulOp>(p.local, wide, factor);
  Value count0 = p.make<nn::IotaOp>(p.local, type, dim, 0);
  Value sum = p.make<nn::AddOp>(p.local, count0, begin);
  for (Value value : {index, narrow, wide, begin})
    p.ask(value.getDefiningOp(), {RuleId::Formula});
  p.ask((p.chance(50) ? begin : sum).getDefiningOp(), {RuleId::Counter});
}

static void makePaddingCut(RuleProgram &p) {
  Value a = p.takeWhole(p.pickShape(1, 3));
  Piece piece = p.pickPiece(a, {30, 5, 50, 5, 5, 0});
  Value x = p.take(piece);
  SmallVector<int64_t> starts, sizes, steps;
  for (auto [dim, size] : llvm::zip_equal(piece.dims, shapeOf(x))) {
    bool isOdd = size > 2 && p.chance(5);
    starts.push_back(isOdd && p.chance(50) ? 1 : 0);
    steps.push_back(isOdd ? p.pickOf<int64_t>({1, 2}) : 1);
    sizes.push_back(isOdd ? size / 2
                          : std::max<int64_t>(0, size - dim.padding));
  }
  Value made = p.make<nn::SliceOp>(p.local, x, starts, sizes, steps);
  p.ask(made.getDefiningOp(), {RuleId::PaddingCut});
}

static void makePaddingPut(RuleProgram &p) {
  Value a = p.takeWhole(p.pickShape(1, 3));
  Value x = p.take(p.pickPiece(a, {20, 8, 5, 10, 10, 0}));
  SmallVector<int64_t> low, high;
  for (size_t dim = 0; dim < shapeOf(x).size(); ++dim) {
    low.push_back(p.chance(5) ? 1 : 0);
    high.push_back(p.chance(50) ? p.pickOf<int64_t>({1, 2, 3}) : 0);
  }
  Value number = p.constant(p.local, RankedTensorType::get({}, p.f64),
                            p.chance(80) ? 0 : 2);
  Value made = p.make<nn::PadOp>(p.local, x, number, low, high);
  p.ask(made.getDefiningOp(), {RuleId::PaddingPut});
}

static void makeFilled(RuleProgram &p) {
  SmallVector<int64_t> shape = p.pickShape(1, 2);
  Value a = p.takeWhole(shape);
  Piece piece = p.pickPiece(a, {10, 8, 40, 5, 5, 0});
  int64_t dim = p.pick(shape.size());
  if (p.chance(60))
    for (Dim &each : piece.dims)
      each.axes.clear();
  if (!piece.dims[dim].free && piece.dims[dim].isPlain() &&
      piece.dims[dim].axes.empty())
    piece.dims[dim].padding = p.pickOf<int64_t>({0, 1, 2, 3});
  Value x = p.take(piece);
  auto type = cast<RankedTensorType>(x.getType());
  auto counts = type.clone(p.local.getI64Type());
  Value size =
            p.constant(p.local, counts,
                       double(p.chance(85) ? shape[dim]
                                           : 1 + p.pick(type.getDimSize(dim)))),
        count = p.make<nn::IotaOp>(p.local, counts, dim, p.chance(90) ? 0 : 1);
  Value isThere = p.make<nn::CompareOp>(p.local,
                                        p.chance(90) ? nn::ComparePredicate::lt
                                                     : nn::ComparePredicate::le,
                                        count, size);
  double infinity = std::numeric_limits<double>::infinity();
  Value fill =
      p.constant(p.local, type, p.pickOf({0., 0., 3., infinity, -infinity}));
  Value made = p.make<nn::SelectOp>(p.local, isThere, x, fill);
  p.ask(made.getDefiningOp(), {RuleId::Filled});
}

ArrayRef<RuleProperty> test::getMoveProperties() {
  static constexpr RuleProperty kProperties[] = {
      {RuleId::Moved, "collectives", makeMoved},
      {RuleId::MovedTerms, "collectives on sums of terms", makeMovedTerms},
      {RuleId::MovedViews, "collectives on views", makeMovedViews},
      {RuleId::Formula, "ranks' numbers", makeCounter},
      {RuleId::Counter, "counters", makeCounter},
      {RuleId::PaddingCut, "padding cut off", makePaddingCut},
      {RuleId::PaddingPut, "padding put", makePaddingPut},
      {RuleId::Filled, "padding filled", makeFilled}};
  return kProperties;
}
