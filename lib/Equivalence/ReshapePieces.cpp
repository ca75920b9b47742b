// Pieces of a reshape: a position in row-major order is a number whose digits
// are the axes that split dimensions and what a rank holds of them. The
// result's dimensions are other groupings of the same digits.

#include "Pieces.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

namespace {
struct RankDigit {
  int64_t size;
  StringAttr axis;   ///< null: a rank holds all of it
  bool free = false; ///< elements along it are equal
  int64_t part = 0;  ///< of which a rank holds this many, if it is not 0
};

/// Neighbouring dimensions, and those that they are made into: of the whole as
/// of what a rank holds.
struct Group {
  size_t from, fromEnd, to, toEnd;
};
} // namespace

/// As many groups as there are; all dimensions are one if there are no others.
static std::vector<Group> getGroups(Operation *logical, Operation *local) {
  ArrayRef<int64_t> in = shapeOf(logical->getOperand(0)),
                    out = shapeOf(logical->getResult(0)),
                    held = shapeOf(local->getOperand(0)),
                    made = shapeOf(local->getResult(0));
  std::vector<Group> groups;
  for (size_t from = 0, to = 0; from < in.size() || to < out.size();) {
    Group group = {from, from, to, to};
    int64_t whole = 1, wholeMade = 1, part = 1, partMade = 1;
    do {
      if (group.fromEnd < in.size() &&
          (whole <= wholeMade || group.toEnd == out.size())) {
        whole *= in[group.fromEnd];
        part *= held[group.fromEnd++];
      } else if (group.toEnd < out.size()) {
        wholeMade *= out[group.toEnd];
        partMade *= made[group.toEnd++];
      } else {
        return {{0, in.size(), 0, out.size()}};
      }
    } while (whole != wholeMade || part != partMade);
    groups.push_back(group);
    from = group.fromEnd;
    to = group.toEnd;
  }
  return groups;
}

/// The dimension of a group that stays one, beside others of one element: what
/// is held of it, in whichever order and with whichever padding, stays the
/// same.
struct Kept {
  size_t from, to;
};
static std::optional<Kept> findKept(const Group &group, Operation *logical,
                                    Operation *local) {
  auto findOnly = [](size_t first, size_t end, ArrayRef<int64_t> whole,
                     ArrayRef<int64_t> held) -> std::optional<size_t> {
    std::optional<size_t> only;
    for (size_t dim = first; dim < end; ++dim) {
      if (whole[dim] == 1 && held[dim] == 1)
        continue;
      if (only)
        return std::nullopt;
      only = dim;
    }
    return only;
  };
  Value in = logical->getOperand(0), out = logical->getResult(0);
  auto from = findOnly(group.from, group.fromEnd, shapeOf(in),
                       shapeOf(local->getOperand(0)));
  auto to = findOnly(group.to, group.toEnd, shapeOf(out),
                     shapeOf(local->getResult(0)));
  if (!from || !to)
    return std::nullopt;
  return Kept{*from, *to};
}

/// Whether all elements along the dimensions of a group are equal.
static bool areEqual(const Group &group, Operation *logical,
                     const Piece &operand, Operation *local) {
  for (size_t dim = group.from; dim < group.fromEnd; ++dim)
    if (!operand.dims[dim].free && (shapeOf(logical->getOperand(0))[dim] != 1 ||
                                    shapeOf(local->getOperand(0))[dim] != 1))
      return false;
  return true;
}

llvm::SmallBitVector equivalence::getStayingEqual(Operation *logical,
                                                  const Piece &operand,
                                                  Operation *local) {
  llvm::SmallBitVector equal(operand.dims.size());
  if (shapeOf(local->getResult(0)).size() ==
      shapeOf(logical->getResult(0)).size())
    for (const Group &group : getGroups(logical, local))
      if (areEqual(group, logical, operand, local))
        equal.set(group.from, group.fromEnd);
  return equal;
}

static std::vector<RankDigit> getDigits(PieceMaker &maker, ArrayRef<Dim> dims,
                                        ArrayRef<int64_t> whole,
                                        ArrayRef<int64_t> part) {
  std::vector<RankDigit> digits;
  for (auto [size, held, dim] : llvm::zip_equal(whole, part, dims)) {
    int64_t rest = size;
    for (StringAttr axis : dim.axes) {
      digits.push_back({maker.getSize(axis), axis});
      rest /= digits.back().size;
    }
    if (rest > 1)
      digits.push_back(
          {rest, {}, dim.free, dim.free && held != size ? held : 0});
  }
  return digits;
}

FailureOr<std::vector<Piece>> PieceMaker::applyReshape(Operation *logical,
                                                       const Piece &operand,
                                                       Operation *local,
                                                       std::string &why) {
  auto fail = [&] {
    why = "expected dimensions that keep what ranks hold in one place, found " +
          describe(operand);
    return failure();
  };
  // Equal elements say nothing of the shape that they are given.
  if (shapeOf(local->getResult(0)).size() !=
      shapeOf(logical->getResult(0)).size())
    return fail();
  ArrayRef<int64_t> whole = shapeOf(logical->getOperand(0)),
                    held = shapeOf(local->getOperand(0)),
                    made = shapeOf(local->getResult(0));
  Piece result;
  result.logical = logical->getResult(0);
  result.partial = operand.partial;
  result.reduction = operand.reduction;
  ArrayRef<int64_t> sizes = shapeOf(result.logical);
  for (const Group &group : getGroups(logical, local)) {
    if (areEqual(group, logical, operand, local)) {
      for (size_t number = group.to; number < group.toEnd; ++number)
        result.dims.push_back({{}, sizes[number] > 1});
      continue;
    }
    auto ofGroup = [&](auto all) {
      return all.slice(group.from, group.fromEnd - group.from);
    };
    std::optional<Kept> kept = findKept(group, logical, local);
    auto isPlain = [&](size_t dim) {
      return (kept && dim == kept->from) || operand.dims[dim].isPlain();
    };
    if (!llvm::all_of(llvm::seq(group.from, group.fromEnd), isPlain))
      return fail();
    if (kept) {
      for (size_t number = group.to; number < group.toEnd; ++number)
        result.dims.push_back(number == kept->to ? operand.dims[kept->from]
                                                 : Dim());
      continue;
    }
    std::vector<RankDigit> digits = getDigits(
        *this, ofGroup(ArrayRef(operand.dims)), ofGroup(whole), ofGroup(held));
    auto next = digits.begin();
    for (size_t number = group.to; number < group.toEnd; ++number) {
      int64_t size = sizes[number];
      Dim dim;
      dim.free = size > 1;
      bool isHeld = false;
      for (int64_t left = size; left > 1;) {
        if (next == digits.end())
          return fail();
        // What is not all there is another dimension as it is, or none.
        if (next->part && (next->size != size || made[number] != next->part))
          return fail();
        int64_t taken = std::min(left, next->size);
        if (left % taken || next->size % taken) {
          // No boundary here: what is held of the next digit belongs to it.
          auto after = next + 1;
          if (next->axis || after == digits.end() || after->axis || after->part)
            return fail();
          after->size *= next->size;
          after->free &= next->free;
          next = after;
          continue;
        }
        if (taken < next->size && next->axis)
          return fail();
        if (next->axis && isHeld)
          return fail(); // a rank's elements would be scattered
        if (next->axis)
          dim.axes.push_back(next->axis);
        else
          isHeld = true;
        dim.free &= next->free;
        left /= taken;
        next->size /= taken;
        if (next->size == 1)
          ++next;
      }
      result.dims.push_back(dim);
    }
  }
  if (!fits(result, local->getResult(0).getType()))
    return fail();
  return std::vector<Piece>{result};
}
