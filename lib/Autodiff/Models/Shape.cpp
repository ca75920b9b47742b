// Gradients of the ops that move elements: the movement backwards; what was
// repeated is summed, what was left out gets zeros.

#include "Group.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
struct Reshape : GradientModel<Reshape, nn::ReshapeOp> {
  static LogicalResult vjp(nn::ReshapeOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    out.push_back(e.reshape(g, typeOf(op.getInput()).getShape()));
    return success();
  }
};

struct Transpose : GradientModel<Transpose, nn::TransposeOp> {
  static LogicalResult vjp(nn::TransposeOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    SmallVector<int64_t> inverse(op.getPermutation().size());
    for (auto [to, from] : llvm::enumerate(op.getPermutation()))
      inverse[from] = to;
    out.push_back(e.make<nn::TransposeOp>(g, inverse));
    return success();
  }
};

struct Broadcast : GradientModel<Broadcast, nn::BroadcastOp> {
  static LogicalResult vjp(nn::BroadcastOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    out.push_back(e.sumTo(g, typeOf(op.getInput()).getShape()));
    return success();
  }
};

Value zeroScalar(const NNBuilder &e, Value like) {
  auto type = RankedTensorType::get({}, typeOf(like).getElementType());
  return e.make<nn::ConstantOp>(
      DenseElementsAttr::get(type, FloatAttr::get(type.getElementType(), 0.0)));
}

/// Puts steps - 1 zeros after every element: [n] as [n, 1], padded to
/// [n, step], as [n · step].
Value spread(const NNBuilder &e, Value x, ArrayRef<int64_t> steps) {
  SmallVector<int64_t> split, low, high, joined;
  for (auto [size, step] : llvm::zip(typeOf(x).getShape(), steps)) {
    split.append({size, 1});
    low.append({0, 0});
    high.append({0, step - 1});
    joined.push_back(size * step);
  }
  Value padded =
      e.make<nn::PadOp>(e.reshape(x, split), zeroScalar(e, x),
                        ArrayRef<int64_t>(low), ArrayRef<int64_t>(high));
  return e.reshape(padded, joined);
}

struct Slice : GradientModel<Slice, nn::SliceOp> {
  static LogicalResult vjp(nn::SliceOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    ArrayRef<int64_t> shape = typeOf(op.getInput()).getShape();
    ArrayRef<int64_t> sizes = op.getSizes();
    if (llvm::is_contained(sizes, 0)) {
      out.push_back(e.splat(0, op.getInput()));
      return success();
    }
    int64_t rank = shape.size();
    SmallVector<int64_t> zeros(rank, 0), ones(rank, 1), starts(rank, 0),
        turns(rank, 1), steps(rank, 1), spans, low, high;
    for (int64_t dim = 0; dim < rank; ++dim) {
      int64_t step = op.getSteps()[dim], first = op.getStarts()[dim];
      if (step < 0) { // Ascending order: read it from the end.
        starts[dim] = sizes[dim] - 1;
        turns[dim] = -1;
        first += (sizes[dim] - 1) * step;
      }
      steps[dim] = sizes[dim] > 1 ? std::abs(step) : 1;
      spans.push_back((sizes[dim] - 1) * steps[dim] + 1);
      low.push_back(first);
      high.push_back(shape[dim] - first - spans.back());
    }
    if (turns != ones)
      g = e.make<nn::SliceOp>(g, starts, sizes, turns);
    if (steps != ones)
      g = e.make<nn::SliceOp>(spread(e, g, steps), zeros, spans, ones);
    out.push_back(e.make<nn::PadOp>(g, zeroScalar(e, g), low, high));
    return success();
  }
};

struct Concat : GradientModel<Concat, nn::ConcatOp> {
  static LogicalResult vjp(nn::ConcatOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    int64_t rank = typeOf(g).getRank();
    SmallVector<int64_t> starts(rank, 0), ones(rank, 1);
    for (Value input : op.getInputs()) {
      ArrayRef<int64_t> sizes = typeOf(input).getShape();
      out.push_back(e.make<nn::SliceOp>(g, starts, sizes, ones));
      starts[op.getDim()] += sizes[op.getDim()];
    }
    return success();
  }
};

struct Pad : GradientModel<Pad, nn::PadOp> {
  static LogicalResult vjp(nn::PadOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    ArrayRef<int64_t> shape = typeOf(op.getInput()).getShape();
    SmallVector<int64_t> ones(shape.size(), 1);
    out.push_back(e.make<nn::SliceOp>(g, op.getLow(), shape, ones));
    // The sum of what surrounds the input; not a difference of sums, which
    // would cancel.
    Type flag = IntegerType::get(op.getContext(), 1);
    auto constant = [&](ArrayRef<int64_t> of, bool set) {
      return e.make<nn::ConstantOp>(
          DenseElementsAttr::get(RankedTensorType::get(of, flag), set));
    };
    Value inside = e.make<nn::PadOp>(constant(shape, true), constant({}, false),
                                     op.getLow(), op.getHigh());
    out.push_back(e.sumTo(e.select(inside, e.splat(0, g), g), {}));
    return success();
  }
};

/// The gradient of a table along a dimension within it, as picked from `g` by
/// the inverse of `indices`, where these are known: each row adds up the places
/// that name it, which are few (windows, lines of a picture), and need not look
/// for them in all. Null where a row would have to read much for nothing.
static Value pickByInverse(const NNBuilder &e, Value g, nn::GatherOp op) {
  auto known = op.getIndices().getDefiningOp<nn::ConstantOp>();
  auto dim = static_cast<int64_t>(op.getDim());
  auto numbers = known ? dyn_cast<DenseIntElementsAttr>(known.getValue())
                       : DenseIntElementsAttr();
  if (!numbers || dim == 0)
    return nullptr;
  int64_t rows = typeOf(op.getTable()).getShape()[dim],
          count = numbers.getNumElements();
  std::vector<SmallVector<int64_t, 2>> places(rows);
  size_t most = 0;
  for (auto [place, index] : llvm::enumerate(numbers.getValues<APInt>())) {
    int64_t row = index.getSExtValue();
    row += row < 0 ? rows : 0;
    if (row < 0 || row >= rows)
      return nullptr; // The run says so.
    places[row].push_back(place);
    most = std::max(most, places[row].size());
  }
  constexpr int64_t kMostReads = 4; // for one that counts
  if (most == 0 || rows * int64_t(most) > kMostReads * count)
    return nullptr;
  // One place more is 0, for rows that have fewer.
  SmallVector<int64_t> inverse;
  bool hasGaps = false;
  for (SmallVector<int64_t, 2> &of : places) {
    hasGaps |= of.size() < most;
    of.resize(most, count);
    llvm::append_range(inverse, of);
  }
  ArrayRef<int64_t> shape = typeOf(g).getShape();
  int64_t rank = typeOf(op.getIndices()).getRank();
  SmallVector<int64_t> flat(shape.take_front(dim));
  flat.push_back(count);
  llvm::append_range(flat, shape.drop_front(dim + rank));
  Value updates = e.reshape(g, flat);
  if (hasGaps) {
    SmallVector<int64_t> low(flat.size(), 0), high(low);
    high[dim] = 1;
    updates = e.make<nn::PadOp>(updates, zeroScalar(e, updates), low, high);
  }
  Value picked = e.make<nn::GatherOp>(
      updates,
      nn::ConstantOp::create(
          e.builder, e.loc,
          DenseElementsAttr::get(RankedTensorType::get({rows, int64_t(most)},
                                                       e.builder.getI64Type()),
                                 ArrayRef(inverse))),
      dim, /*padding_index=*/IntegerAttr(), /*non_negative=*/true);
  return e.sum(picked, {dim + 1});
}

/// Rows that were picked more than once add up; those of padding do not count.
struct Gather : GradientModel<Gather, nn::GatherOp> {
  static LogicalResult vjp(nn::GatherOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    if (std::optional<int64_t> padding = op.getPaddingIndex()) {
      Value indices = e.cast(op.getIndices(), e.builder.getI64Type());
      Value isPadding = e.compare(nn::ComparePredicate::eq, indices,
                                  e.splat(*padding, indices));
      // [i…] stands behind the first `dim` dimensions of g.
      SmallVector<int64_t> sizes(typeOf(g).getRank(), 1);
      llvm::copy(typeOf(indices).getShape(), sizes.begin() + op.getDim());
      isPadding =
          e.broadcast(e.reshape(isPadding, sizes), typeOf(g).getShape());
      g = e.select(isPadding, e.splat(0, g), g);
    }
    if (Value picked = pickByInverse(e, g, op)) {
      out.push_back(picked);
      return success();
    }
    out.push_back(e.make<nn::ScatterAddOp>(e.splat(0, op.getTable()),
                                           op.getIndices(), g,
                                           static_cast<int64_t>(op.getDim()),
                                           /*batch_dims=*/int64_t(0)));
    return success();
  }
};

/// Tuples become places in the table of a batch, its indexed dimensions made
/// one, whose rows that were picked more than once add up. Batches stay apart:
/// each micro-batch, or rank, has the tables of its own.
struct GatherNd : GradientModel<GatherNd, nn::GatherNdOp> {
  static LogicalResult vjp(nn::GatherNdOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    ArrayRef<int64_t> table = typeOf(op.getTable()).getShape();
    Value indices = e.cast(op.getIndices(), e.builder.getI64Type());
    ArrayRef<int64_t> shape = typeOf(indices).getShape();
    int64_t batch = op.getBatchDims(), width = shape.back();
    SmallVector<int64_t> picks(shape.drop_back());
    auto number = [&](int64_t value) {
      return e.make<nn::ConstantOp>(DenseElementsAttr::get(
          RankedTensorType::get(picks, e.builder.getI64Type()), value));
    };
    Value place = width == 0 ? number(0) : Value();
    int64_t places = 1;
    for (int64_t part = 0; part < width; ++part) {
      SmallVector<int64_t> starts(shape.size(), 0), sizes(shape),
          ones(shape.size(), 1);
      starts.back() = part;
      sizes.back() = 1;
      int64_t size = table[batch + part];
      Value index =
          e.reshape(e.make<nn::SliceOp>(indices, starts, sizes, ones), picks);
      // Of one number the scatter itself knows what a negative one means.
      if (width > 1)
        index = e.select(e.compare(nn::ComparePredicate::lt, index, number(0)),
                         e.add(index, number(size)), index);
      place = place ? e.add(e.mul(place, number(size)), index) : index;
      places *= size;
    }
    ArrayRef<int64_t> rest = table.drop_front(batch + width);
    SmallVector<int64_t> flat(table.take_front(batch));
    flat.push_back(places);
    llvm::append_range(flat, rest);
    Value zeros =
        e.splat(RankedTensorType::get(flat, typeOf(g).getElementType()), 0);
    Value sum = e.make<nn::ScatterAddOp>(zeros, place, g, batch, batch);
    out.push_back(e.reshape(sum, table));
    return success();
  }
};

/// What was added is picked again, by each batch's own indices.
struct ScatterAdd : GradientModel<ScatterAdd, nn::ScatterAddOp> {
  static LogicalResult vjp(nn::ScatterAddOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    auto batch = static_cast<int64_t>(op.getBatchDims());
    if (batch == 0) {
      out.append({g, Value(),
                  e.make<nn::GatherOp>(g, op.getIndices(), op.getDim(),
                                       /*padding_index=*/IntegerAttr(),
                                       /*non_negative=*/false)});
      return success();
    }
    if (static_cast<int64_t>(op.getDim()) != batch)
      return op.emitError()
             << "expected a scatter along dimension " << batch
             << ", the first behind its batches, found " << op.getDim();
    SmallVector<int64_t> tuples(typeOf(op.getIndices()).getShape());
    tuples.push_back(1);
    out.append(
        {g, Value(),
         e.make<nn::GatherNdOp>(g, e.reshape(op.getIndices(), tuples), batch)});
    return success();
  }
};
} // namespace

void autodiff::attachShapeModels(MLIRContext *context) {
  nn::ReshapeOp::attachInterface<Reshape>(*context);
  nn::TransposeOp::attachInterface<Transpose>(*context);
  nn::BroadcastOp::attachInterface<Broadcast>(*context);
  nn::SliceOp::attachInterface<Slice>(*context);
  nn::ConcatOp::attachInterface<Concat>(*context);
  nn::PadOp::attachInterface<Pad>(*context);
  nn::GatherOp::attachInterface<Gather>(*context);
  nn::GatherNdOp::attachInterface<GatherNd>(*context);
  nn::ScatterAddOp::attachInterface<ScatterAdd>(*context);
}
