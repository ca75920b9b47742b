// Finds repeated blocks in the sequence of weights that a forward uses.

#include "GatherUnits.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

using namespace mlir;
using namespace accel::parallel;

namespace {
struct Repetition {
  size_t period = 0, count = 1;
  size_t covers() const { return count > 1 ? period * count : 0; }
};
} // namespace

/// The repetition that begins at the first of `uses` and covers most of them.
static Repetition findRepetition(ArrayRef<WeightUse> uses) {
  Repetition best;
  for (size_t period = 1; 2 * period <= uses.size(); ++period) {
    size_t same = 0;
    while (period + same < uses.size() &&
           uses[same].signature == uses[period + same].signature)
      ++same;
    Repetition found{period, 1 + same / period};
    if (found.covers() > best.covers())
      best = found;
  }
  return best;
}

/// Units of uses that nothing repeats, none larger than the largest weight.
static void splitBySize(ArrayRef<WeightUse> uses, unsigned &unit,
                        SmallVectorImpl<unsigned> &units) {
  int64_t limit = 0, filled = 0;
  for (const WeightUse &use : uses)
    limit = std::max(limit, use.bytes);
  llvm::SmallDenseSet<unsigned> held;
  for (const WeightUse &use : uses) {
    int64_t more = held.contains(use.weight) ? 0 : use.bytes;
    if (filled + more > limit) {
      ++unit;
      filled = 0;
      held.clear();
      more = use.bytes;
    }
    held.insert(use.weight);
    filled += more;
    units.push_back(unit);
  }
}

SmallVector<unsigned>
accel::parallel::findGatherUnits(ArrayRef<WeightUse> uses) {
  SmallVector<unsigned> units;
  unsigned unit = 0;
  bool repeats = false;
  size_t next = 0, rest = 0; // uses[rest, next) are in no repetition
  auto closeRest = [&] {
    if (rest == next)
      return;
    units.append(next - rest, unit);
    ++unit;
  };
  while (next < uses.size()) {
    Repetition found = findRepetition(uses.drop_front(next));
    if (found.covers() == 0) {
      ++next;
      continue;
    }
    repeats = true;
    closeRest();
    for (size_t copy = 0; copy < found.count; ++copy)
      units.append(found.period, unit++);
    next += found.period * found.count;
    rest = next;
  }
  if (!repeats)
    splitBySize(uses, unit, units);
  else
    closeRest();
  return units;
}
