// Convolutions and their gradients as commands. Their tensors lie with channels
// first, as their shapes say, or last, where transposes around them say so
// (nn-put-channels-last). A command has all of its samples in one of the
// orders.

#include "Lowering.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

namespace {
/// How the command wants a tensor: of `rank` dimensions, one of groups, behind
/// which come channels and space.
struct Layout {
  size_t groups, rank;
};
} // namespace

/// The view with a dimension of one group, where it has none.
static StridedView withGroups(StridedView view, Layout layout) {
  if (view.shape.size() == layout.rank)
    return view;
  size_t next = layout.groups;
  view.strides.insert(view.strides.begin() + next,
                      view.strides[next] * view.shape[next]);
  view.shape.insert(view.shape.begin() + next, 1);
  return view;
}

/// Whether the dimensions from `first` on number elements `step` apart, in
/// row-major order. Repeated elements, and such as lie backwards, do not.
static bool isEven(const StridedView &view, size_t first,
                   std::optional<int64_t> step = std::nullopt) {
  for (size_t dim = view.shape.size(); dim-- > first;) {
    if (view.shape[dim] == 1)
      continue;
    if (view.strides[dim] <= 0 || (step && view.strides[dim] != *step))
      return false;
    step = view.strides[dim] * view.shape[dim];
  }
  return true;
}

/// Whether samples [N, G, C, S…] have channels first, or last: of a single
/// position, or channel, both.
static bool isFirst(const StridedView &view) { return isEven(view, 3, 1); }
static bool isLast(const StridedView &view) {
  return (view.shape[2] == 1 || view.strides[2] == 1) && isEven(view, 3);
}

/// The same view with its dimensions in `order`; result dimension d is
/// dimension order[d].
static StridedView permute(const StridedView &view, ArrayRef<size_t> order) {
  StridedView permuted{view.offset, {}, {}};
  for (size_t dim : order) {
    permuted.shape.push_back(view.shape[dim]);
    permuted.strides.push_back(view.strides[dim]);
  }
  return permuted;
}

/// A view of `shape` whose elements follow each other with the dimensions in
/// `order`.
static StridedView inOrder(ArrayRef<int64_t> shape, ArrayRef<size_t> order) {
  StridedView view = StridedView::contiguous(shape);
  int64_t stride = 1;
  for (size_t dim : llvm::reverse(order)) {
    view.strides[dim] = stride;
    stride *= shape[dim];
  }
  return view;
}

Place Lowering::getInOrder(Value value, const StridedView &view,
                           ArrayRef<size_t> order, Location loc) {
  Place &made = reordered[{value, static_cast<int>(order[1])}];
  if (made.buffer)
    return made;
  Place source = getPlace(value);
  source.view = permute(view, order);
  made = copy(source, loc, Role::activation);
  made.view = inOrder(view.shape, order);
  return made;
}

LogicalResult Lowering::lowerConvolution(Operation *op, Convolution kind,
                                         ArrayRef<int64_t> strides,
                                         ArrayRef<int64_t> dilations,
                                         ArrayRef<int64_t> low) {
  Location loc = op->getLoc();
  size_t rank = strides.size() + 3;
  Layout ofSamples{1, rank}, ofWeight{0, rank};
  bool makesWeight = kind == Convolution::weight_grad;
  Value result = op->getResult(0);
  OperandRange samples = op->getOperands().take_front(makesWeight ? 2 : 1);
  auto isOnlyLast = [&](const Place &place) {
    StridedView view = withGroups(place.view, ofSamples);
    return isLast(view) && !isFirst(view);
  };
  // Whoever has channels last decides for all.
  Place c = createResult(result, loc);
  bool areLast = (!makesWeight && isOnlyLast(c)) ||
                 llvm::any_of(samples, [&](Value value) {
                   return isOnlyLast(getPlace(value));
                 });
  // [n, s…, g, c] of [n, g, c, s…]; of the weight [g, o, c, k…] what windows,
  // and rows of the output's gradient, are multiplied by: matrices whose rows
  // are places and the channels that are summed over, [g, o, k…, c] transposed
  // and [g, k…, o, c].
  SmallVector<size_t> channelsLast{0}, rows{0};
  llvm::append_range(channelsLast, llvm::seq<size_t>(3, rank));
  channelsLast.append({1, 2});
  if (kind == Convolution::forward)
    rows.push_back(1);
  llvm::append_range(rows, llvm::seq<size_t>(3, rank));
  if (kind == Convolution::input_grad)
    rows.push_back(1);
  rows.push_back(2);

  SmallVector<ViewAttr, 2> read;
  auto add = [&](Value value, Layout layout, bool fits, bool canReorder,
                 ArrayRef<size_t> order) {
    Place place = getPlace(value);
    if (!fits && canReorder)
      place = getInOrder(value, withGroups(place.view, layout), order, loc);
    else if (!fits)
      place = getContiguous(value, loc);
    place.view = withGroups(place.view, layout);
    read.push_back(getView(place));
  };
  for (Value value : samples) {
    StridedView view = withGroups(getPlace(value).view, ofSamples);
    add(value, ofSamples, areLast ? isLast(view) : isFirst(view), areLast,
        channelsLast);
  }
  if (!makesWeight) {
    Value weight = op->getOperand(1);
    StridedView view = withGroups(getPlace(weight).view, ofWeight);
    bool isWindow = llvm::any_of(ArrayRef(view.shape).drop_front(3),
                                 [](int64_t size) { return size != 1; });
    bool reorders = areLast && isWindow;
    add(weight, ofWeight, !reorders && isEven(view, 2, 1), reorders, rows);
  }
  // Where the order of its readers does not suit the command, they read a view.
  Layout layout = makesWeight ? ofWeight : ofSamples;
  StridedView view = withGroups(c.view, layout);
  if (makesWeight ? !isEven(view, 2, 1)
                  : !(areLast ? isLast(view) : isFirst(view))) {
    bool hasGroups = c.view.shape.size() == rank;
    view = withGroups(StridedView::contiguous(c.view.shape), layout);
    if (areLast && !makesWeight)
      view = inOrder(view.shape, channelsLast);
    c.view = view;
    if (!hasGroups) {
      c.view.shape.erase(c.view.shape.begin() + layout.groups);
      c.view.strides.erase(c.view.strides.begin() + layout.groups);
    }
    places[result] = c;
  }
  c.view = view;
  auto conv = ConvOp::create(commands, loc, kind, read[0], read[1], getView(c),
                             strides, dilations, low, /*scratch=*/nullptr,
                             /*form=*/nullptr, "compute");
  return conv.verify();
}
