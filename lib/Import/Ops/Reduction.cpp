// Import of reductions: all of them sums, maxima, minima or products with
// something elementwise around.

#include "lib/Import/Kinks.h"
#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"
#include "lib/Onnx/NodeInfo.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;
using Kind = nn::ReductionKind;

namespace {
/// What a reduction operator says beside its operand.
struct Reduction {
  SmallVector<int64_t> dims;
  bool keepDims;
};
} // namespace

/// Axes from the attribute, or with `asOperand` from operand 1.
static Reduction reduction(Importer &n, bool asOperand) {
  int64_t rank = Importer::rank(n.operand(0));
  Reduction result;
  result.keepDims = n.intAttr("keepdims", 1);
  std::optional<SmallVector<int64_t>> axes;
  bool noop = false;
  if (asOperand) {
    noop = n.intAttr("noop_with_empty_axes", 0);
    if (n.operand(1))
      axes = n.constantInts(1);
  } else {
    axes = n.intsAttr("axes");
  }
  if (axes && !axes->empty())
    result.dims = n.normalizeAxes(*axes, rank);
  else if (!noop)
    llvm::append_range(result.dims, llvm::seq<int64_t>(rank));
  return result;
}

template <Kind kind, bool asOperand> static LogicalResult plain(Importer &n) {
  auto [dims, keep] = reduction(n, asOperand);
  // max(x, dim) hands its gradient to the element whose index it returns.
  StringRef call = onnxio::tracedOperator(n.node);
  bool first = dims.size() == 1 && (call == "max.dim" || call == "min.dim");
  return n.finish(n.reduce(kind, n.operand(0), dims, keep, first));
}

template <bool asOperand> static LogicalResult importMean(Importer &n) {
  auto [dims, keep] = reduction(n, asOperand);
  return n.hasFailed() ? failure() : n.finish(n.mean(n.operand(0), dims, keep));
}

template <bool asOperand> static LogicalResult importSumSquare(Importer &n) {
  auto [dims, keep] = reduction(n, asOperand);
  Value x = n.operand(0);
  return n.finish(n.reduce(Kind::sum, n.binary<nn::MulOp>(x, x), dims, keep));
}

template <bool asOperand> static LogicalResult importL2(Importer &n) {
  auto [dims, keep] = reduction(n, asOperand);
  Value x = n.operand(0);
  Value sum = n.reduce(Kind::sum, n.binary<nn::MulOp>(x, x), dims, keep);
  return n.finish(zeroAtZero(
      n, sum, [&](Value square) { return n.unary<nn::SqrtOp>(square); }));
}

template <bool asOperand> static LogicalResult importL1(Importer &n) {
  auto [dims, keep] = reduction(n, asOperand);
  return n.finish(
      n.reduce(Kind::sum, n.unary<nn::AbsOp>(n.operand(0)), dims, keep));
}

template <bool asOperand> static LogicalResult importLogSum(Importer &n) {
  auto [dims, keep] = reduction(n, asOperand);
  return n.finish(
      n.unary<nn::LogOp>(n.reduce(Kind::sum, n.operand(0), dims, keep)));
}

/// max + log(sum(exp(x - max))), the maximum being 0 where it is infinite, so
/// that no infinity is subtracted from itself.
template <bool asOperand> static LogicalResult importLogSumExp(Importer &n) {
  auto [dims, keep] = reduction(n, asOperand);
  Value x = n.operand(0);
  Value top = n.reduce(Kind::max, x, dims, /*keepDims=*/true);
  Value infinite =
      n.compare(nn::ComparePredicate::eq, n.unary<nn::AbsOp>(top),
                n.splatLike(top, std::numeric_limits<double>::infinity()));
  top = n.select(infinite, n.splatLike(top, 0), top);
  Value sum =
      n.reduce(Kind::sum, n.unary<nn::ExpOp>(n.binary<nn::SubOp>(x, top)), dims,
               /*keepDims=*/true);
  Value result = n.binary<nn::AddOp>(n.unary<nn::LogOp>(sum), top);
  if (!result || keep)
    return n.finish(result);
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < Importer::rank(x); ++dim)
    if (!llvm::is_contained(dims, dim))
      shape.push_back(Importer::shape(x)[dim]);
  return n.finish(n.reshape(result, shape));
}

static LogicalResult importCumSum(Importer &n) {
  Value x = n.operand(0);
  if (Importer::element(x).isInteger(1))
    return n.error() << "expected numbers to add up, found " << x.getType();
  int64_t dim = n.normalizeAxis(n.constantInt(1), Importer::rank(x));
  SmallVector<NamedAttribute> attributes{n.named("dim", dim)};
  if (n.intAttr("exclusive", 0))
    attributes.push_back(n.unit("exclusive"));
  if (n.intAttr("reverse", 0))
    attributes.push_back(n.unit("reverse"));
  return n.finish(n.create<nn::CumsumOp>(x, attributes));
}

/// In steps of 1, 2, 4, …: each element times the one so far before it has the
/// product of twice as many (Hillis and Steele, 1986).
static LogicalResult importCumProd(Importer &n) {
  Value x = n.operand(0);
  if (Importer::element(x).isInteger(1))
    return n.error() << "expected numbers to multiply, found " << x.getType();
  int64_t dim = n.normalizeAxis(n.constantInt(1), Importer::rank(x));
  bool isExclusive = n.intAttr("exclusive", 0),
       isReverse = n.intAttr("reverse", 0);
  if (n.hasFailed())
    return failure();
  int64_t size = Importer::shape(x)[dim];
  auto shift = [&](Value value, int64_t by) {
    SmallVector<int64_t> low(Importer::rank(x), 0), high = low;
    (isReverse ? high : low)[dim] = by;
    Value kept = n.slice(value, dim, isReverse ? by : 0, size - by);
    return n.create<nn::PadOp>({kept, n.splat({}, Importer::element(x), 1)},
                               {n.named("low", low), n.named("high", high)});
  };
  Value product = isExclusive && size > 0 ? shift(x, 1) : x;
  for (int64_t by = 1; by < size && !n.hasFailed(); by *= 2)
    product = n.binary<nn::MulOp>(product, shift(product, by));
  return n.finish(product);
}

/// Elements and their places, along any dimension.
static LogicalResult importTopK(Importer &n) {
  Value x = n.operand(0);
  int64_t rank = Importer::rank(x);
  int64_t axis = n.normalizeAxis(n.intAttr("axis", -1), rank);
  int64_t k = n.constantInt(1);
  bool smallest = n.intAttr("largest", 1) == 0;
  n.ignoreAttr("sorted"); // what comes in no order may come in this one
  if (n.hasFailed())
    return failure();
  SmallVector<int64_t> last; // the axis last; its own inverse
  llvm::append_range(last, llvm::seq<int64_t>(rank));
  std::swap(last[axis], last.back());
  x = n.transpose(x, last);
  SmallVector<NamedAttribute> attributes{n.named("k", k)};
  if (smallest)
    attributes.push_back(n.unit("smallest"));
  Value places = n.create<nn::TopKOp>({x}, attributes);
  if (n.wantsResult(0)) {
    SmallVector<int64_t> tuples(Importer::shape(places));
    tuples.push_back(1);
    Value elements = n.create<nn::GatherNdOp>({x, n.reshape(places, tuples)},
                                              n.named("batch_dims", rank - 1));
    n.setResult(0, n.transpose(elements, last));
  }
  n.setResult(1, n.transpose(places, last));
  return n.finish();
}

/// The place of a line's greatest element, or of its least: of equal ones the
/// first, or the last. NaN is what both look for, as in PyTorch.
template <bool least> static LogicalResult importArgMax(Importer &n) {
  Value x = n.operand(0);
  int64_t rank = Importer::rank(x);
  int64_t axis = n.normalizeAxis(n.intAttr("axis", 0), rank);
  bool keepDims = n.intAttr("keepdims", 1);
  bool last = n.intAttr("select_last_index", 0);
  if (n.hasFailed())
    return failure();
  SmallVector<int64_t> shape(Importer::shape(x)), order;
  int64_t size = shape[axis];
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != axis)
      order.push_back(dim);
  order.push_back(axis);
  SmallVector<NamedAttribute> attributes{n.named("k", int64_t(1))};
  if (least && Importer::isFloat(x))
    x = n.unary<nn::NegOp>(x); // the least of all numbers is not NaN
  else if (least)
    attributes.push_back(n.unit("smallest"));
  if (last) {
    SmallVector<int64_t> starts(rank, 0), steps(rank, 1);
    starts[axis] = size - 1;
    steps[axis] = -1;
    x = n.create<nn::SliceOp>(x, {n.named("starts", starts),
                                  n.named("sizes", shape),
                                  n.named("steps", steps)});
  }
  Value place = n.create<nn::TopKOp>(n.transpose(x, order), attributes);
  if (last)
    place = n.binary<nn::SubOp>(n.splatLike(place, size - 1), place);
  if (keepDims)
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + axis);
  return n.finish(n.reshape(place, shape));
}

ArrayRef<OpRow> accel::import::reductionOps() {
  static const OpRow rows[] = {
      {"", "ArgMax", 1, 1, 1, importArgMax<false>},
      {"", "ArgMin", 1, 1, 1, importArgMax<true>},
      {"", "CumProd", 26, 2, 2, importCumProd},
      {"", "CumSum", 14, 2, 2, importCumSum},
      {"", "CumSum", 11, 2, 2, importCumSum},
      {"", "ReduceL1", 1, 1, 1, importL1<false>},
      {"", "ReduceL1", 18, 1, 2, importL1<true>},
      {"", "ReduceL2", 1, 1, 1, importL2<false>},
      {"", "ReduceL2", 18, 1, 2, importL2<true>},
      {"", "ReduceLogSum", 1, 1, 1, importLogSum<false>},
      {"", "ReduceLogSum", 18, 1, 2, importLogSum<true>},
      {"", "ReduceLogSumExp", 1, 1, 1, importLogSumExp<false>},
      {"", "ReduceLogSumExp", 18, 1, 2, importLogSumExp<true>},
      {"", "ReduceMax", 1, 1, 1, plain<Kind::max, false>},
      {"", "ReduceMax", 18, 1, 2, plain<Kind::max, true>},
      {"", "ReduceMean", 1, 1, 1, importMean<false>},
      {"", "ReduceMean", 18, 1, 2, importMean<true>},
      {"", "ReduceMin", 1, 1, 1, plain<Kind::min, false>},
      {"", "ReduceMin", 18, 1, 2, plain<Kind::min, true>},
      {"", "ReduceProd", 1, 1, 1, plain<Kind::prod, false>},
      {"", "ReduceProd", 18, 1, 2, plain<Kind::prod, true>},
      {"", "ReduceSum", 1, 1, 1, plain<Kind::sum, false>},
      {"", "ReduceSum", 13, 1, 2, plain<Kind::sum, true>},
      {"", "TopK", 11, 2, 2, importTopK},
      {"", "ReduceSumSquare", 1, 1, 1, importSumSquare<false>},
      {"", "ReduceSumSquare", 18, 1, 2, importSumSquare<true>},
  };
  return rows;
}
