// Values of the logical program that are one though their ops read others:
// views that come to the same, what is cut out of them, what is combined in
// another order, and what is joined with nothing.

#include "Logical.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// The digits along a dimension, neighbours as one.
static std::vector<Digit> joinDigitsOf(ArrayRef<ViewDigit> digits) {
  std::vector<Digit> joined;
  for (const Digit &digit : digits)
    if (digit.size == 1)
      continue;
    else if (!joined.empty() &&
             joined.back().stride == digit.stride * digit.size)
      joined.back() = {joined.back().size * digit.size, digit.stride};
    else
      joined.push_back(digit);
  return joined;
}

/// What stands along the dimensions that a reduction keeps: views go through
/// each element once, so that it is the same that is combined.
static std::vector<std::vector<Digit>> getKept(nn::ReduceOp op,
                                               const View &view) {
  std::vector<std::vector<Digit>> kept;
  for (auto [dim, digits] : llvm::enumerate(view.dims))
    if (!llvm::is_contained(op.getDims(), static_cast<int64_t>(dim)))
      kept.push_back(joinDigitsOf(digits));
  return kept;
}

/// Keeps each `step`-th of `size` positions along a dimension from `start` on,
/// and adds to `first` where the first of them is; false if no digits say that.
static bool cutDigits(std::vector<ViewDigit> &digits, int64_t start,
                      int64_t size, int64_t step, int64_t &first) {
  if (digits.empty())
    return start == 0 && size == 1;
  ViewDigit &major = digits.front();
  int64_t minor = 1, last = start + (size - 1) * step;
  for (const ViewDigit &digit : ArrayRef(digits).drop_front())
    minor *= digit.size;
  first += start / minor * major.stride;
  if (start / minor == last / minor && minor > 1) {
    digits.erase(digits.begin());
    return cutDigits(digits, start % minor, size, step, first);
  }
  if (start % minor != 0 || size % minor != 0 || (step != 1 && minor != 1))
    return false;
  major.size = size / minor;
  major.stride *= step;
  return true;
}

/// What has been cut out of a view in the same order: in one shape, or a view.
Value Logical::findCut(nn::SliceOp op) {
  View view = getView(rootOf(op.getInput()));
  int64_t first = 0;
  for (auto [dim, digits] : llvm::enumerate(view.dims))
    if (!cutDigits(digits, op.getStarts()[dim], op.getSizes()[dim],
                   op.getSteps()[dim], first))
      return {};
  std::vector<ViewDigit> digits;
  for (const auto &dim : view.dims)
    llvm::append_range(digits, dim);
  Cut cut = {first, joinDigitsOf(digits), op};
  auto &others = cuts[view.root];
  auto same = llvm::find_if(others, [&](const Cut &other) {
    return other.first == cut.first && other.digits == cut.digits;
  });
  if (same == others.end()) {
    others.push_back(std::move(cut));
    return {};
  }
  View own = View::of(same->value);
  return own.reshape(shapeOf(op)) ? addView(op, std::move(own)) : Value();
}

/// Notes that a value is a view, and finds one that is the same view.
Value Logical::addView(Value value, View view) {
  auto &family = viewsOf[view.root];
  if (family.empty())
    family.push_back(view.root);
  Value same;
  for (Value other : family)
    if (other.getType() == value.getType() && getView(other).dims == view.dims)
      same = other;
  if (same)
    return same;
  family.push_back(value);
  views[value] = std::move(view);
  return {};
}

Value Logical::findEqual(Operation *op) {
  if (Value only = getOnlyJoined(op))
    return rootOf(only);
  if (op->getNumOperands() == 0 || !hasElements(op->getOperand(0)))
    return {};
  if (isa<nn::ReshapeOp, nn::TransposeOp>(op)) {
    View view = getView(rootOf(op->getOperand(0)));
    if (auto transpose = dyn_cast<nn::TransposeOp>(op))
      view.transpose(transpose.getPermutation());
    else if (!view.reshape(shapeOf(op->getResult(0))))
      return {}; // a root of its own
    return addView(op->getResult(0), std::move(view));
  }
  if (auto slice = dyn_cast<nn::SliceOp>(op))
    return hasElements(slice) ? findCut(slice) : Value();
  auto reduce = dyn_cast<nn::ReduceOp>(op);
  if (!reduce)
    return {};
  const View &view = getView(rootOf(reduce.getInput()));
  auto kept = getKept(reduce, view);
  auto &others = reductions[view.root];
  for (Operation *each : others) {
    auto other = cast<nn::ReduceOp>(each);
    if (other.getKind() == reduce.getKind() &&
        other.getType() == reduce.getType() &&
        getKept(other, getView(rootOf(other.getInput()))) == kept)
      return other;
  }
  others.push_back(op);
  return {};
}
