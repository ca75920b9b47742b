// Finds repeated blocks in the sequence of weights that a forward uses.

#include "GatherUnits.h"

#include "dialects/Interfaces/KernelSource.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

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

/// The same for uses that stand for each other in isomorphic blocks: what the
/// weight looks like, and who reads it, through what only moves its elements.
static size_t getSignature(OpOperand &use) {
  auto type = cast<RankedTensorType>(use.get().getType());
  llvm::hash_code hash = llvm::hash_combine(
      type.getElementType(), llvm::hash_combine_range(type.getShape()));
  for (OpOperand *at = &use;;) {
    Operation *reader = at->getOwner();
    hash = llvm::hash_combine(hash, reader->getName().getStringRef(),
                              at->getOperandNumber());
    if (!accel::isView(reader) || !reader->hasOneUse())
      return hash;
    at = &*reader->use_begin();
  }
}

GatherUnits::GatherUnits(ArrayRef<Use> uses, ArrayRef<StringRef> names) {
  SmallVector<WeightUse> looks;
  for (auto [operand, weight] : uses) {
    auto type = cast<RankedTensorType>(operand->get().getType());
    looks.push_back(
        {getSignature(*operand), weight,
         type.getNumElements() * type.getElementTypeBitWidth() / 8});
  }
  forward = findGatherUnits(looks);
  unitsOf.resize(names.size());
  SmallVector<std::optional<SmallVector<StringRef>>> paths(1);
  for (auto [use, unit] : llvm::zip_equal(uses, forward)) {
    unitsOf[use.second].push_back(unit);
    SmallVector<StringRef> path;
    names[use.second].split(path, '.');
    path.pop_back(); // the weight's own
    if (unit >= paths.size())
      paths.resize(unit + 1);
    auto &shared = paths[unit];
    if (!shared)
      shared = path;
    size_t same = 0;
    while (same < std::min(shared->size(), path.size()) &&
           (*shared)[same] == path[same])
      ++same;
    shared->truncate(same);
  }
  llvm::StringMap<unsigned> seen;
  for (auto &path : paths) {
    std::string name = path ? llvm::join(*path, ".") : "";
    if (name.empty())
      name = "model";
    unsigned number = seen[name]++;
    units.push_back(number ? name + "/" + std::to_string(number) : name);
  }
}

SmallVector<unsigned>
GatherUnits::inBackward(ArrayRef<unsigned> weights) const {
  SmallVector<unsigned> found;
  unsigned at = getLast();
  for (unsigned weight : weights) {
    auto distance = [&](unsigned unit) {
      return unit > at ? unit - at : at - unit;
    };
    if (!unitsOf[weight].empty())
      at = *llvm::min_element(unitsOf[weight], [&](unsigned a, unsigned b) {
        return distance(a) < distance(b);
      });
    found.push_back(at);
  }
  return found;
}
