// Digits of positions: taken apart, put together, and read as pieces of other
// tensors with the same elements.

#include "Views.h"

#include "Rules.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// Joins what stands next to each other in the root as well.
static void merge(std::vector<ViewDigit> &digits) {
  std::vector<ViewDigit> merged;
  for (const ViewDigit &digit : digits) {
    if (digit.size == 1)
      continue;
    if (!merged.empty()) {
      ViewDigit &last = merged.back();
      if (last.stride == digit.stride * digit.size && last.free == digit.free &&
          !last.held && !digit.held) {
        last = {{last.size * digit.size, digit.stride}, digit.free};
        continue;
      }
    }
    merged.push_back(digit);
  }
  digits = std::move(merged);
}

/// Takes the first `size` positions of a digit as one of their own, and leaves
/// the rest; false if that is no whole number.
static bool takeMajor(ViewDigit &digit, int64_t size, ViewDigit &taken) {
  if (digit.size % size != 0 || (digit.held && digit.size != size))
    return false;
  taken = digit;
  taken.size = size;
  taken.stride = digit.stride * (digit.size / size);
  digit.size /= size;
  return true;
}

View View::of(Value root) {
  View view;
  view.root = root;
  int64_t stride = 1;
  for (int64_t size : llvm::reverse(shapeOf(root))) {
    auto &digits = view.dims.emplace_back();
    if (size != 1)
      digits.push_back({{size, stride}});
    stride *= size;
  }
  std::reverse(view.dims.begin(), view.dims.end());
  return view;
}

bool View::reshape(ArrayRef<int64_t> shape) {
  if (llvm::is_contained(shape, 0))
    return false; // no element, no digits
  std::vector<ViewDigit> digits;
  for (const auto &dim : dims)
    digits.insert(digits.end(), dim.begin(), dim.end());
  merge(digits);
  std::vector<std::vector<ViewDigit>> made;
  auto next = digits.begin();
  for (int64_t size : shape) {
    auto &dim = made.emplace_back();
    for (int64_t left = size; left > 1;) {
      if (next == digits.end())
        return false;
      int64_t there = next->held ? next->held : next->size;
      if (there <= left) {
        if (left % there != 0)
          return false;
        dim.push_back(*next++);
        left /= there;
      } else if (!takeMajor(*next, left, dim.emplace_back())) {
        return false;
      } else {
        left = 1;
      }
    }
  }
  if (next != digits.end())
    return false;
  dims = std::move(made);
  return true;
}

void View::orderEqual() {
  for (auto &digits : dims)
    for (ViewDigit &digit : digits)
      digit.free &= digit.held != 0;
}

void View::transpose(ArrayRef<int64_t> permutation) {
  std::vector<std::vector<ViewDigit>> made;
  for (int64_t source : permutation)
    made.push_back(dims[source]);
  dims = std::move(made);
}

std::optional<std::vector<ViewDigit>> View::getDigits(unsigned dim,
                                                      Digit range) const {
  std::vector<ViewDigit> found; // minor to major
  int64_t skip = range.stride, left = range.size;
  for (ViewDigit digit : llvm::reverse(dims[dim])) {
    if (left == 1)
      break;
    if (skip > 1) {
      if (skip >= digit.size) {
        if (skip % digit.size != 0)
          return std::nullopt;
        skip /= digit.size;
        continue;
      }
      if (digit.size % skip != 0)
        return std::nullopt;
      digit.stride *= skip;
      digit.size /= skip;
      skip = 1;
    }
    int64_t taken = std::min(left, digit.size);
    if (left % taken != 0 || digit.size % taken != 0)
      return std::nullopt;
    digit.size = taken;
    left /= taken;
    found.push_back(digit);
  }
  if (left != 1)
    return std::nullopt;
  std::reverse(found.begin(), found.end());
  return found;
}

std::optional<View> equivalence::getView(const View &whole, const Piece &piece,
                                         ArrayRef<int64_t> local,
                                         PieceMaker &maker) {
  View view;
  view.root = whole.root;
  view.partial = piece.partial;
  view.reduction = piece.reduction;
  ArrayRef<int64_t> shape = shapeOf(piece.logical);
  if (llvm::is_contained(shape, 0))
    return std::nullopt;
  for (auto [number, dim] : llvm::enumerate(piece.dims)) {
    auto &held = view.dims.emplace_back();
    if (dim.padding)
      return std::nullopt;
    if (dim.free) {
      held = whole.dims[number];
      for (ViewDigit &digit : held)
        digit.free = true;
      if (local[number] == shape[number])
        continue;
      // Nobody knows which of them are here, nor needs to.
      if (held.size() != 1)
        return std::nullopt;
      held.front().held = local[number];
      continue;
    }
    if (!dim.parts.empty()) {
      auto range = whole.getDigits(number, {shape[number], 1});
      if (!range || range->size() != 1)
        return std::nullopt;
      view.interleaved.push_back({range->front(), dim.parts});
    }
    std::vector<Digit> order = dim.order;
    if (order.empty() && shape[number] != 1)
      order = {{shape[number], 1}};
    // The axes split what comes first.
    auto next = order.begin();
    for (StringAttr axis : dim.axes) {
      int64_t size = maker.getSize(axis);
      if (next == order.end() || next->size % size != 0)
        return std::nullopt;
      next->size /= size;
      std::optional<std::vector<ViewDigit>> digits =
          whole.getDigits(number, {size, next->stride * next->size});
      if (!digits || digits->size() != 1)
        return std::nullopt;
      view.ranks.push_back({axis, digits->front()});
      if (next->size == 1)
        ++next;
    }
    for (; next != order.end(); ++next) {
      std::optional<std::vector<ViewDigit>> digits =
          whole.getDigits(number, *next);
      if (!digits)
        return std::nullopt;
      held.insert(held.end(), digits->begin(), digits->end());
    }
  }
  return view;
}

std::vector<View> equivalence::readAsSplit(const View &view,
                                           PieceMaker &maker) {
  auto isPart = [](const ViewDigit &digit) {
    return digit.held != 0 && digit.held != digit.size;
  };
  // What no digit of it is read as is the view itself.
  if (llvm::none_of(view.dims, [&](const auto &digits) {
        return llvm::any_of(digits, isPart);
      }))
    return {};
  std::vector<View> made = {view};
  for (size_t dim = 0; dim < view.dims.size(); ++dim)
    for (size_t number = 0; number < view.dims[dim].size(); ++number) {
      ViewDigit digit = view.dims[dim][number];
      if (!isPart(digit) || digit.size % digit.held != 0)
        continue;
      std::vector<View> more;
      for (const View &from : made) {
        Axes used = from.partial;
        for (const auto &[axis, taken] : from.ranks)
          used.push_back(axis);
        for (const Axes &axes : maker.findSplits(used, digit.size, digit.held))
          // A rank has neighbours, or every so many-th: what it holds counts
          // between any two of the axes.
          for (size_t place = 0; place <= axes.size(); ++place) {
            if (digit.held == 1 && place != axes.size())
              continue;
            View &split = more.emplace_back(from);
            int64_t stride = digit.stride * digit.size;
            auto take = [&](int64_t size) {
              stride /= size;
              return Digit{size, stride};
            };
            for (size_t axis = 0; axis <= axes.size(); ++axis) {
              if (axis == place)
                split.dims[dim][number] = {take(digit.held), true};
              if (axis < axes.size())
                split.ranks.push_back(
                    {axes[axis], take(maker.getSize(axes[axis]))});
            }
          }
      }
      made = std::move(more);
    }
  // One element is no digit, as in the view of a tensor.
  for (View &split : made)
    for (auto &digits : split.dims)
      llvm::erase_if(digits,
                     [](const ViewDigit &digit) { return digit.size == 1; });
  return made;
}

/// Cuts a digit wherever `whole` has a boundary.
static std::optional<std::vector<ViewDigit>> refine(ViewDigit digit,
                                                    const View &whole) {
  std::vector<int64_t> bounds;
  for (const auto &dim : whole.dims)
    for (const ViewDigit &each : dim) {
      bounds.push_back(each.stride);
      bounds.push_back(each.stride * each.size);
    }
  llvm::sort(bounds);
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  std::vector<ViewDigit> parts; // minor to major
  for (int64_t bound : bounds) {
    if (bound <= digit.stride || bound >= digit.stride * digit.size)
      continue;
    int64_t minor = bound / digit.stride;
    if (bound % digit.stride != 0 || digit.size % minor != 0 || digit.held)
      return std::nullopt;
    ViewDigit part = digit;
    part.size = minor;
    parts.push_back(part);
    digit.stride = bound;
    digit.size /= minor;
  }
  parts.push_back(digit);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

static std::optional<Located> findPlace(const Digit &digit, const View &whole) {
  for (auto [number, dim] : llvm::enumerate(whole.dims)) {
    int64_t behind = 1;
    for (const ViewDigit &each : llvm::reverse(dim)) {
      int64_t step = digit.stride / each.stride;
      if (digit.stride % each.stride == 0 && step * digit.size <= each.size &&
          each.size % (step * digit.size) == 0)
        return Located{static_cast<unsigned>(number),
                       {digit.size, behind * step}};
      behind *= each.size;
    }
  }
  return std::nullopt;
}

std::optional<LocatedView> equivalence::locate(const View &view,
                                               const View &whole) {
  LocatedView located;
  for (const auto &digits : view.dims) {
    auto &dim = located.dims.emplace_back();
    for (const ViewDigit &digit : digits) {
      std::optional<std::vector<ViewDigit>> parts = refine(digit, whole);
      if (!parts)
        return std::nullopt;
      for (const ViewDigit &part : *parts) {
        std::optional<Located> place = findPlace(part, whole);
        if (!place)
          return std::nullopt;
        dim.push_back(*place);
      }
    }
  }
  for (auto &[axis, digit] : view.ranks) {
    std::optional<Located> place = findPlace(digit, whole);
    if (!place)
      return std::nullopt;
    located.ranks.push_back(*place);
  }
  return located;
}

std::vector<Digit> equivalence::makeOrder(ArrayRef<Digit> digits) {
  std::vector<Digit> order;
  for (const Digit &digit : digits)
    if (digit.size == 1)
      continue;
    else if (!order.empty() && order.back().stride == digit.stride * digit.size)
      order.back() = {order.back().size * digit.size, digit.stride};
    else
      order.push_back(digit);
  if (order.size() == 1)
    order.clear();
  return order;
}

/// The order in which `digits` go through a dimension, empty for its own; none
/// if they are not all of it, each once.
static std::optional<std::vector<Digit>> getOrder(ArrayRef<Digit> digits,
                                                  int64_t size) {
  SmallVector<Digit> sorted(digits);
  llvm::sort(sorted, [](const Digit &lhs, const Digit &rhs) {
    return lhs.stride < rhs.stride;
  });
  int64_t next = 1;
  for (const Digit &digit : sorted) {
    if (digit.stride != next)
      return std::nullopt;
    next *= digit.size;
  }
  if (next != size)
    return std::nullopt;
  return makeOrder(digits);
}

std::optional<Piece> equivalence::getPiece(View view, Value value,
                                           const View &whole) {
  if (view.dims.size() != whole.dims.size())
    return std::nullopt;
  Piece piece;
  piece.logical = value;
  piece.partial = view.partial;
  piece.reduction = view.reduction;
  std::optional<LocatedView> located = locate(view, whole);
  if (!located)
    return std::nullopt;
  std::vector<SmallVector<std::pair<StringAttr, Digit>>> splits(
      whole.dims.size());
  for (auto [rank, place] : llvm::zip_equal(view.ranks, located->ranks))
    splits[place.dim].push_back({rank.first, place.digit});
  for (auto [number, digits] : llvm::enumerate(view.dims)) {
    Dim &dim = piece.dims.emplace_back();
    auto &split = splits[number];
    dim.free =
        !digits.empty() && split.empty() &&
        llvm::all_of(digits, [](const ViewDigit &digit) { return digit.free; });
    if (!dim.free && llvm::any_of(digits, [](const ViewDigit &digit) {
          return digit.held != 0;
        }))
      return std::nullopt;
    llvm::sort(split, [](const auto &lhs, const auto &rhs) {
      return lhs.second.stride > rhs.second.stride;
    });
    SmallVector<Digit> order;
    for (auto &[axis, digit] : split) {
      dim.axes.push_back(axis);
      order.push_back(digit);
    }
    for (const Located &place : located->dims[number]) {
      if (place.dim != number)
        return std::nullopt;
      order.push_back(place.digit);
    }
    std::optional<std::vector<Digit>> made =
        getOrder(order, shapeOf(value)[number]);
    if (!made)
      return std::nullopt;
    if (!dim.free)
      dim.order = *made;
  }
  for (auto &[range, parts] : view.interleaved) {
    std::optional<Located> place = findPlace(range, whole);
    if (!place)
      return std::nullopt;
    Dim &dim = piece.dims[place->dim];
    if (place->digit.stride != 1 ||
        place->digit.size != shapeOf(value)[place->dim] || dim.free ||
        !dim.order.empty())
      return std::nullopt;
    dim.parts = parts;
  }
  return piece;
}

/// Puts a rank's first elements along a dimension where its coordinates say.
static bool split(View &view, unsigned dim, ArrayRef<StringAttr> axes,
                  PieceMaker &maker) {
  auto &digits = view.dims[dim];
  for (StringAttr axis : axes) {
    ViewDigit taken;
    int64_t size = maker.getSize(axis);
    if (digits.empty())
      return false;
    // Of equal elements any are as good.
    if (ViewDigit &first = digits.front(); first.free) {
      int64_t held = first.held ? first.held : first.size;
      if (held % size != 0)
        return false;
      first.held = held / size;
      continue;
    }
    if (!takeMajor(digits.front(), size, taken))
      return false;
    view.ranks.push_back({axis, taken});
    if (digits.front().size == 1)
      digits.erase(digits.begin());
  }
  return true;
}

/// Takes the digits that axes split off a view; false if one splits none.
static bool takeRanks(View &view, ArrayRef<StringAttr> axes,
                      std::vector<ViewDigit> &taken) {
  for (StringAttr axis : axes) {
    auto found = llvm::find_if(
        view.ranks, [&](const auto &rank) { return rank.first == axis; });
    if (found == view.ranks.end())
      return false;
    taken.push_back(ViewDigit{found->second});
    view.ranks.erase(found);
  }
  return true;
}

/// Puts them in front of what a rank has along a dimension.
static void join(View &view, unsigned dim, ArrayRef<ViewDigit> taken) {
  view.dims[dim].insert(view.dims[dim].begin(), taken.begin(), taken.end());
}

/// What was split over an axis of the group is split over another one of it.
static bool permute(View &view, dist::PermuteOp op, PieceMaker &maker) {
  Axes group = maker.dropUnits(op.getAxes().getNames());
  auto getCoordinate = [&](StringAttr of, int64_t member) {
    for (StringAttr axis : llvm::reverse(group)) {
      if (axis == of)
        return member % maker.getSize(axis);
      member /= maker.getSize(axis);
    }
    llvm_unreachable("an axis of the group");
  };
  for (StringAttr axis : view.partial)
    if (!holds(Premise::ViewIsNoTerm, !llvm::is_contained(group, axis)))
      return false;
  for (auto &[axis, digit] : view.ranks) {
    if (!llvm::is_contained(group, axis))
      continue;
    StringAttr from = axis;
    auto isNew = [&](StringAttr to) {
      for (auto [member, source] : llvm::enumerate(op.getSources()))
        if (getCoordinate(to, member) != getCoordinate(from, source))
          return false;
      return maker.getSize(to) == maker.getSize(from);
    };
    auto found = llvm::find_if(group, isNew);
    if (found == group.end())
      return false;
    axis = *found;
  }
  return true;
}

bool equivalence::moveView(View &view, dist::CollectiveOpInterface op,
                           PieceMaker &maker) {
  Axes axes = maker.dropUnits(op.getAxes().getNames());
  auto isSame = [&] {
    return holds(Premise::ViewIsOfAll,
                 llvm::none_of(axes, [&](StringAttr axis) {
                   return llvm::is_contained(view.partial, axis) ||
                          llvm::any_of(view.ranks, [&](const auto &rank) {
                            return rank.first == axis;
                          });
                 }));
  };
  auto complete = [&](dist::Reduction kind) {
    for (StringAttr axis : axes)
      if (!holds(Premise::ViewIsPartial,
                 llvm::is_contained(view.partial, axis)) ||
          !holds(Premise::ViewIsCombinedSo, kind == view.reduction))
        return false;
    llvm::erase_if(view.partial, [&](StringAttr axis) {
      return llvm::is_contained(axes, axis);
    });
    if (view.partial.empty())
      view.reduction = dist::Reduction::sum;
    return true;
  };
  return llvm::TypeSwitch<Operation *, bool>(op.getOperation())
      .Case(
          [&](dist::AllReduceOp reduce) { return complete(reduce.getKind()); })
      .Case([&](dist::ReduceScatterOp reduce) {
        return complete(reduce.getKind()) &&
               split(view, reduce.getDim(), axes, maker);
      })
      .Case([&](dist::AllGatherOp all) {
        std::vector<ViewDigit> taken;
        if (!takeRanks(view, axes, taken))
          return false;
        join(view, all.getDim(), taken);
        return true;
      })
      .Case([&](dist::AllSliceOp slice) {
        return isSame() && split(view, slice.getDim(), axes, maker);
      })
      .Case([&](dist::AllToAllOp all) {
        // A rank cuts its own part before it gets the others'.
        std::vector<ViewDigit> taken;
        if (!takeRanks(view, axes, taken) || !isSame() ||
            !split(view, all.getSplitDim(), axes, maker))
          return false;
        join(view, all.getConcatDim(), taken);
        return true;
      })
      .Case([&](dist::PermuteOp permuted) {
        return permute(view, permuted, maker);
      })
      .Default([](Operation *) { return false; });
}
