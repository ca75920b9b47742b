// Concatenations, slices and padding of whole parts of a dimension: where what
// is in a part comes in another order, the parts are a dimension of their own.

#include "Follow.h"

#include "dialects/NN/NN.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

namespace {
/// What an op does along the one dimension that it changes.
struct Change {
  unsigned dim;
  int64_t before = 0, after = 0; ///< elements cut away, or padded
};

/// A rank's part of a tensor, the parts of which are a dimension of their own,
/// or the major places of one.
struct Parts {
  View view;
  LocatedView located;
  int64_t size;     ///< of a part
  int64_t held = 1; ///< so many of its elements stand behind one another
  std::vector<Located> within = {}; ///< and where
};
} // namespace

/// None if it changes several dimensions, or does not keep neighbours.
static std::optional<Change> getChange(Operation *op) {
  if (auto concat = dyn_cast<nn::ConcatOp>(op))
    return Change{static_cast<unsigned>(concat.getDim())};
  std::optional<Change> change;
  auto add = [&](unsigned dim, int64_t before, int64_t after) {
    if (before == 0 && after == 0)
      return true;
    bool isFirst = !change;
    change = Change{dim, before, after};
    return isFirst;
  };
  if (auto slice = dyn_cast<nn::SliceOp>(op)) {
    for (auto [dim, size] : llvm::enumerate(shapeOf(slice.getInput())))
      if (int64_t start = slice.getStarts()[dim];
          slice.getSteps()[dim] != 1 ||
          !add(dim, start, size - start - slice.getSizes()[dim]))
        return std::nullopt;
  } else if (auto pad = dyn_cast<nn::PadOp>(op)) {
    for (auto [dim, low] : llvm::enumerate(pad.getLow()))
      if (!add(dim, low, pad.getHigh()[dim]))
        return std::nullopt;
  }
  return change;
}

/// Places that stand side by side in one dimension, as one: how a value has
/// come to its shape, by heads or all at once, means nothing.
static void joinPlaces(std::vector<Located> &places) {
  std::vector<Located> joined;
  for (const Located &place : places)
    if (!joined.empty() && joined.back().dim == place.dim &&
        joined.back().digit.stride == place.digit.stride * place.digit.size)
      joined.back().digit = {joined.back().digit.size * place.digit.size,
                             place.digit.stride};
    else
      joined.push_back(place);
  places = std::move(joined);
}

/// Reads a view so that dimension `dim` of it counts parts along dimension
/// `wholeDim` of `whole`, and then what it has of each.
static std::optional<Parts> getParts(const View &view, const View &whole,
                                     unsigned dim, unsigned wholeDim,
                                     int64_t size) {
  std::optional<LocatedView> located = locate(view, whole);
  if (!located || !view.interleaved.empty())
    return std::nullopt;
  for (std::vector<Located> &places : located->dims)
    joinPlaces(places);
  Parts parts = {view, *located, size};
  for (const Located &place : located->dims[dim])
    if (parts.within.empty() && place.dim == wholeDim &&
        place.digit.stride * place.digit.size == parts.size) {
      parts.size = place.digit.stride;
    } else {
      parts.within.push_back(place);
      parts.held *= place.digit.size;
    }
  for (const auto &digits : view.dims)
    for (const ViewDigit &digit : digits)
      if (digit.held)
        return std::nullopt;
  return parts;
}

/// Whether operands are alike in all but how many parts they have along `own`.
static bool areLike(const Parts &lhs, const Parts &rhs, unsigned own) {
  auto isSame = [](const Located &a, const Located &b) {
    return a.dim == b.dim && a.digit == b.digit;
  };
  if (lhs.size != rhs.size || lhs.view.partial != rhs.view.partial ||
      lhs.view.reduction != rhs.view.reduction ||
      lhs.view.ranks.size() != rhs.view.ranks.size() ||
      !llvm::equal(lhs.within, rhs.within, isSame))
    return false;
  // Which of the axes has come first says nothing.
  auto getPlace = [](const Parts &parts, StringAttr axis) -> const Located * {
    for (auto &&[rank, at] :
         llvm::zip_equal(parts.view.ranks, parts.located.ranks))
      if (rank.first == axis)
        return &at;
    return nullptr;
  };
  for (const auto &rank : lhs.view.ranks) {
    const Located *place = getPlace(rhs, rank.first);
    if (!place || !isSame(*getPlace(lhs, rank.first), *place))
      return false;
  }
  for (size_t dim = 0; dim < rhs.located.dims.size(); ++dim)
    if (dim != own &&
        !llvm::equal(lhs.located.dims[dim], rhs.located.dims[dim], isSame))
      return false;
  return true;
}

/// What the local op makes of views, the first of them `view`, in terms of
/// `whole`'s result.
std::optional<View> Follower::applyParts(Operation *whole, Operation *local,
                                         const View &view) {
  std::optional<Change> change = getChange(whole), own = getChange(local);
  if (!change || !own || getOnlyJoined(whole))
    return std::nullopt;
  bool isConcat = isa<nn::ConcatOp>(whole);
  std::optional<Parts> first;
  unsigned tensors = isConcat ? whole->getNumOperands() : 1;
  for (unsigned number = 0; number < tensors; ++number) {
    Value operand = logical.rootOf(whole->getOperand(number));
    View of = logical.getView(operand);
    auto read = [&](const View &view) -> std::optional<Parts> {
      if (view.root != of.root)
        return std::nullopt;
      std::optional<Parts> parts = getParts(view, of, own->dim, change->dim,
                                            shapeOf(operand)[change->dim]);
      return parts && (!first || areLike(*first, *parts, own->dim))
                 ? parts
                 : std::nullopt;
    };
    if (!first) {
      first = read(view);
      if (!first)
        return std::nullopt;
      continue;
    }
    if (llvm::none_of(getViews(local->getOperand(number)),
                      [&](const View &view) { return read(view).has_value(); }))
      return std::nullopt;
  }
  auto isWhole = [&](int64_t whole, int64_t local) {
    return local % first->held == 0 &&
           whole == local / first->held * first->size;
  };
  if (!holds(Premise::ChangesWholeParts,
             isWhole(change->before, own->before) &&
                 isWhole(change->after, own->after)))
    return std::nullopt;
  if (auto pad = dyn_cast<nn::PadOp>(whole)) {
    const Known &value = at(local->getOperand(1));
    SplatElementsAttr number;
    if (!matchPattern(logical.rootOf(pad.getValue()), m_Constant(&number)) ||
        number.getSplatValue<Attribute>() != value.splat ||
        (!first->view.partial.empty() && !value.isZero()))
      return std::nullopt;
  }
  // The same positions in the result, whose parts are more or fewer.
  Value made = whole->getResult(0);
  View result;
  // A slice may be one of others in another shape: with the same positions.
  result.root = logical.getView(logical.rootOf(made)).root;
  result.partial = first->view.partial;
  result.reduction = first->view.reduction;
  SmallVector<int64_t> strides(shapeOf(made).size(), 1);
  for (size_t dim = strides.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shapeOf(made)[dim];
  auto place = [&](const Located &at) {
    return ViewDigit{{at.digit.size, at.digit.stride * strides[at.dim]}};
  };
  for (auto [dim, places] : llvm::enumerate(first->located.dims)) {
    auto &digits = result.dims.emplace_back();
    if (dim != own->dim) {
      for (const Located &at : places)
        digits.push_back(place(at));
    } else {
      if (int64_t left = shapeOf(made)[change->dim] / first->size; left > 1)
        digits.push_back(place({change->dim, {left, first->size}}));
      for (const Located &at : first->within)
        digits.push_back(place(at));
    }
    int64_t size = 1;
    for (const ViewDigit &digit : digits)
      size *= digit.size;
    if (size != shapeOf(local->getResult(0))[dim])
      return std::nullopt;
  }
  for (auto [rank, at] :
       llvm::zip_equal(first->view.ranks, first->located.ranks))
    result.ranks.push_back({rank.first, place(at)});
  return result;
}

void Follower::followParts(Operation *op, Known &result) {
  if (!isa<nn::ConcatOp, nn::SliceOp, nn::PadOp>(op))
    return;
  Logical::Ops candidates;
  for (const View &view : getViews(op->getOperand(0))) {
    ArrayRef<Value> family = logical.getViews(view.root);
    for (Value value : family.empty() ? ArrayRef(view.root) : family)
      for (Operation *reader : logical.getReaders(value))
        if (reader->getName() == op->getName() &&
            reader->getNumOperands() == op->getNumOperands())
          candidates.insert(reader);
  }
  for (Operation *candidate : candidates)
    for (const View &from : getViews(op->getOperand(0)))
      if (std::optional<View> view = applyParts(candidate, op, from)) {
        addPieces(*view, op->getResult(0), result);
        result.views.push_back(std::move(*view));
      }
}
