// Digits of positions: taken apart, put together, and read as pieces of other
// tensors with the same elements.

#include "Views.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

void equivalence::merge(std::vector<ViewDigit> &digits) {
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

bool ViewDigit::takeMajor(int64_t count, ViewDigit &taken) {
  if (size % count != 0 || (held && size != count))
    return false;
  taken = *this;
  taken.size = count;
  taken.stride = stride * (size / count);
  size /= count;
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
      } else if (!next->takeMajor(left, dim.emplace_back())) {
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

/// Reads digits of a range of `parts`, all of one size, that come interleaved
/// as digits of the position itself: the first of each part, of each the
/// second, …, are digits in another order. None where a digit stands across two
/// of them.
static std::optional<std::vector<ViewDigit>>
deinterleave(const ViewDigit &digit, const Digit &range,
             const Interleaving &parts) {
  int64_t size = parts.sizes.front(), share = size / parts.by,
          count = parts.sizes.size();
  View places; // the positions of the range, as they come
  int64_t end = range.stride * range.size;
  places.dims.push_back({ViewDigit{{parts.by, range.stride * share * count}},
                         ViewDigit{{count, range.stride * share}},
                         ViewDigit{{share, range.stride}}});
  std::optional<std::vector<ViewDigit>> digits = refine(digit, places);
  if (!digits)
    return std::nullopt;
  for (ViewDigit &each : *digits) {
    if (each.stride < range.stride || each.stride >= end)
      continue;
    int64_t step = each.stride / range.stride;
    if (step >= share * count)
      each.stride = each.stride / count;
    else if (step >= share)
      each.stride = each.stride / share * size;
  }
  return digits;
}

/// Takes a range of equal parts out of those that come interleaved; false if
/// its digits cannot say it.
static bool deinterleave(View &view, size_t number) {
  const auto [range, parts] = view.interleaved[number];
  if (!llvm::all_equal(parts.sizes))
    return false;
  view.interleaved.erase(view.interleaved.begin() + number);
  for (auto &digits : view.dims) {
    std::vector<ViewDigit> made;
    for (const ViewDigit &digit : digits) {
      auto some = deinterleave(digit, range, parts);
      if (!some)
        return false;
      made.insert(made.end(), some->begin(), some->end());
    }
    digits = std::move(made);
  }
  for (auto &[axis, digit] : view.ranks) {
    auto some = deinterleave(ViewDigit{digit}, range, parts);
    if (!some || some->size() != 1)
      return false;
    digit = some->front();
  }
  return true;
}

std::optional<View> equivalence::readAsDigits(View view) {
  if (view.interleaved.empty())
    return std::nullopt;
  for (auto &digits : view.dims)
    merge(digits);
  for (size_t number = view.interleaved.size(); number-- > 0;)
    if (!deinterleave(view, number))
      return std::nullopt;
  return view;
}

std::optional<Piece> equivalence::getPiece(View view, Value value,
                                           const View &whole) {
  // What is all of a dimension is its parts; of a dimension that has others
  // beside it, digits.
  for (size_t number = view.interleaved.size(); number-- > 0;) {
    const Digit &range = view.interleaved[number].first;
    std::optional<Located> place = findPlace(range, whole);
    bool isDim = place && place->digit.stride == 1 &&
                 place->digit.size == shapeOf(value)[place->dim];
    if (!isDim && !deinterleave(view, number))
      return std::nullopt;
  }
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
    Dim &dim = piece.dims[findPlace(range, whole)->dim];
    if (dim.free || !dim.order.empty())
      return std::nullopt;
    dim.parts = parts;
  }
  return piece;
}
