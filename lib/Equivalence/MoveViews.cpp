// What collectives make of views: digits of positions that ranks split, and put
// back in any place.

#include "Rules.h"
#include "Views.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// Puts a rank's first elements along a dimension where its coordinates say.
static bool split(View &view, unsigned dim, ArrayRef<StringAttr> axes,
                  PieceMaker &maker) {
  auto &digits = view.dims[dim];
  merge(digits);
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
    if (!digits.front().takeMajor(size, taken))
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
static void prepend(View &view, unsigned dim, ArrayRef<ViewDigit> taken) {
  view.dims[dim].insert(view.dims[dim].begin(), taken.begin(), taken.end());
}

/// The ranges of positions that digits are: neighbours are one.
static std::vector<Digit> joinDigits(std::vector<Digit> digits) {
  llvm::sort(digits, [](const Digit &lhs, const Digit &rhs) {
    return lhs.stride > rhs.stride;
  });
  std::vector<Digit> joined;
  for (const Digit &digit : digits)
    if (!joined.empty() && joined.back().stride == digit.stride * digit.size)
      joined.back() = {joined.back().size * digit.size, digit.stride};
    else
      joined.push_back(digit);
  return joined;
}

/// Digits that axes of the group split are split by others of it, the same
/// positions among the same ranks: where a member begins is where the one
/// began that it got its piece from, and that must be a sum of one digit for
/// each axis.
static bool permute(View &view, dist::PermuteOp op, PieceMaker &maker) {
  Axes group = maker.dropUnits(op.getAxes().getNames());
  for (StringAttr axis : view.partial)
    if (!holds(Premise::ViewIsNoTerm, !llvm::is_contained(group, axis)))
      return false;
  std::vector<std::pair<StringAttr, Digit>> before, after, others;
  for (const auto &rank : view.ranks)
    (llvm::is_contained(group, rank.first) ? before : others).push_back(rank);
  int64_t members = op.getSources().size();
  auto getCoordinate = [&](StringAttr of, int64_t member) {
    for (StringAttr axis : llvm::reverse(group)) {
      if (axis == of)
        return member % maker.getSize(axis);
      member /= maker.getSize(axis);
    }
    llvm_unreachable("an axis of the group");
  };
  auto getBegin = [&](ArrayRef<std::pair<StringAttr, Digit>> ranks,
                      int64_t member) {
    int64_t begin = 0;
    for (auto [axis, digit] : ranks)
      begin += getCoordinate(axis, member) * digit.stride;
    return begin;
  };
  int64_t places = members; // of a step along an axis, in members
  for (StringAttr axis : group) {
    places /= maker.getSize(axis);
    if (int64_t stride = getBegin(before, op.getSources()[places]))
      after.push_back({axis, {maker.getSize(axis), stride}});
  }
  for (int64_t member = 0; member < members; ++member)
    if (!holds(Premise::ViewBeginsThere,
               getBegin(after, member) ==
                   getBegin(before, op.getSources()[member])))
      return false;
  std::vector<Digit> old, now;
  for (const auto &rank : before)
    old.push_back(rank.second);
  for (const auto &rank : after)
    now.push_back(rank.second);
  // A digit of interleaved parts may end where they do.
  bool isCutElsewhere = llvm::any_of(
      now, [&](const Digit &digit) { return !llvm::is_contained(old, digit); });
  if (joinDigits(old) != joinDigits(now) ||
      (isCutElsewhere && !view.interleaved.empty()))
    return false;
  view.ranks = std::move(others);
  view.ranks.insert(view.ranks.end(), after.begin(), after.end());
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
        prepend(view, all.getDim(), taken);
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
        prepend(view, all.getConcatDim(), taken);
        return true;
      })
      .Case([&](dist::PermuteOp permuted) {
        return permute(view, permuted, maker);
      })
      .Default([](Operation *) { return false; });
}
