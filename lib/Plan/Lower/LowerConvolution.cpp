// Convolutions and their gradients as commands.

#include "Lowering.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

/// Whether the last `count` dimensions follow each other without gaps.
static bool isDense(const StridedView &view, size_t count) {
  int64_t stride = 1;
  for (size_t back = 1; back <= count; ++back) {
    size_t dim = view.shape.size() - back;
    if (view.shape[dim] != 1 && view.strides[dim] != stride)
      return false;
    stride *= view.shape[dim];
  }
  return true;
}

namespace {
/// How the command wants a tensor: `lead` dimensions, one of groups, and as the
/// last ones `dense` that have no gaps.
struct Wanted {
  size_t lead, dense;
};
} // namespace

/// The view with a dimension of one group, where it has none of `rank`.
static StridedView withGroups(StridedView view, Wanted wanted, size_t rank) {
  if (view.shape.size() == rank)
    return view;
  size_t next = wanted.lead;
  view.strides.insert(view.strides.begin() + next,
                      view.strides[next] * view.shape[next]);
  view.shape.insert(view.shape.begin() + next, 1);
  return view;
}

LogicalResult Lowering::lowerConvolution(Operation *op, Convolution kind,
                                         ArrayRef<int64_t> strides,
                                         ArrayRef<int64_t> dilations,
                                         ArrayRef<int64_t> low) {
  Location loc = op->getLoc();
  size_t space = strides.size(), rank = space + 3;
  Wanted ofSamples{1, space}, ofWeight{0, space + 1};
  bool makesWeight = kind == Convolution::weight_grad;
  auto read = [&](Value value, Wanted wanted) {
    Place place = getPlace(value);
    if (!isDense(place.view, wanted.dense))
      place = getContiguous(value, loc);
    place.view = withGroups(place.view, wanted, rank);
    return getView(place);
  };
  ViewAttr a = read(op->getOperand(0), ofSamples),
           b = read(op->getOperand(1), makesWeight ? ofSamples : ofWeight);
  Wanted wanted = makesWeight ? ofWeight : ofSamples;
  Place c = createResult(op->getResult(0), loc);
  if (!isDense(c.view, wanted.dense)) {
    // Its reader's order does not suit the command: that one reads a view.
    c.view = StridedView::contiguous(
        cast<RankedTensorType>(op->getResult(0).getType()).getShape());
    places[op->getResult(0)] = c;
  }
  c.view = withGroups(c.view, wanted, rank);
  auto conv = ConvOp::create(commands, loc, kind, a, b, getView(c), strides,
                             dilations, low, /*scratch=*/nullptr,
                             /*form=*/nullptr, "compute");
  return conv.verify();
}
