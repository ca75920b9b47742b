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
