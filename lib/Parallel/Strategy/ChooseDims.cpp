// Weighs the classes of an entry's dimensions against each other.

#include "ChooseDims.h"

#include "dialects/NN/Entry.h"
#include "dialects/NN/NN.h"
#include "lib/Cost/Decision.h"
#include "lib/Cost/Machine.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

/// Of a byte of a sum over ranks: its reduce-scatter and its all-gather both
/// send and receive it. It weighs classes that exclude each other.
static constexpr double kFlopsPerByte = 4 * cost::kFlopsPerByteSent;
/// A class that saves less for a byte is not split. (The two products of an MLP
/// of width d save 3 d.)
static constexpr double kLeastFlopsPerByte = 4;

/// What stands on a state's argument; null if something else reads it.
dist::ConstraintOp parallel::findConstraint(BlockArgument argument) {
  return argument.hasOneUse()
             ? dyn_cast<dist::ConstraintOp>(*argument.user_begin())
             : dist::ConstraintOp();
}

Attribute parallel::getState(func::FuncOp entry, BlockArgument argument) {
  return entry.getArgAttr(argument.getArgNumber(), nn::kStateAttr);
}

/// The work that is done in pieces, times the share of the time in which it
/// is done and not waited for.
double DimChooser::getGain(unsigned number) {
  return double(classes.get(number).flops) /
         (1 + kFlopsPerByte / (getRatio(number) + 1));
}

SmallVector<unsigned>
DimChooser::findRivals(unsigned number,
                       const llvm::SetVector<unsigned> &chosen) {
  llvm::SmallSetVector<unsigned, 8> rivals;
  for (unsigned group : classes.get(number).groups)
    for (unsigned other : classes.getGroup(group))
      if (other != number && chosen.contains(other))
        rivals.insert(other);
  return rivals.takeVector();
}

/// Of classes that exclude each other those of the most gain, nearly: first
/// what costs least for its work, then what gains more than all it excludes.
/// (The width of a model excludes the hidden widths of all its layers.)
llvm::SetVector<unsigned> DimChooser::choose(ArrayRef<unsigned> candidates) {
  SmallVector<unsigned> sorted =
      llvm::filter_to_vector(candidates, [&](unsigned number) {
        return getRatio(number) >= kLeastFlopsPerByte;
      });
  llvm::stable_sort(sorted, [&](unsigned a, unsigned b) {
    return getRatio(a) > getRatio(b);
  });
  llvm::SetVector<unsigned> chosen(placed.begin(), placed.end());
  for (unsigned number : sorted)
    if (findRivals(number, chosen).empty())
      chosen.insert(number);
  for (unsigned number : sorted) {
    SmallVector<unsigned> rivals = findRivals(number, chosen);
    double others = 0;
    for (unsigned rival : rivals)
      others += placed.contains(rival) ? HUGE_VAL : getGain(rival);
    if (chosen.contains(number) || getGain(number) <= others)
      continue;
    for (unsigned rival : rivals)
      chosen.remove(rival);
    chosen.insert(number);
  }
  return chosen;
}

/// The classes of positions that attend to each other: a table of positions is
/// not split because of them, or all activations were split by sequence.
llvm::SmallDenseSet<unsigned> DimChooser::findPositions() {
  llvm::SmallDenseSet<unsigned> positions;
  entry.walk([&](nn::AttentionOp op) {
    positions.insert(classes.find(op.getQuery(), 2));
    positions.insert(classes.find(op.getKey(), 2));
  });
  return positions;
}

/// What indices point into, and what probabilities are of.
llvm::SmallDenseSet<unsigned> DimChooser::findVocabularies() {
  llvm::SmallDenseSet<unsigned> found;
  for (Operation &op : entry.front())
    if (auto gather = dyn_cast<nn::GatherOp>(op))
      found.insert(classes.find(gather.getTable(), gather.getDim()));
    else if (auto softmax = dyn_cast<nn::SoftmaxOp>(op))
      found.insert(classes.find(softmax.getInput(), softmax.getDim()));
    else if (auto loss = dyn_cast<nn::CrossEntropyOp>(op))
      found.insert(classes.find(loss.getLogits(),
                                loss.getLogits().getType().getRank() - 1));
  return found;
}

/// The key heads of query heads that are split, where groups of ranks have one.
void DimChooser::findKeyHeads(const llvm::SetVector<unsigned> &chosen) {
  if (keyRanks == 1)
    return;
  llvm::SmallDenseSet<unsigned> queries;
  for (auto attention : entry.front().getOps<nn::AttentionOp>())
    queries.insert(classes.find(attention.getQuery(), 1));
  for (auto attention : entry.front().getOps<nn::AttentionOp>()) {
    unsigned number = classes.find(attention.getKey(), 1);
    if (chosen.contains(classes.find(attention.getQuery(), 1)) &&
        !chosen.contains(number) && classes.get(number).size % keyRanks == 0 &&
        llvm::all_of(findRivals(number, chosen),
                     [&](unsigned rival) { return queries.contains(rival); }))
      shared.insert(number);
  }
}

/// Whether somebody has split the state over these axes.
bool DimChooser::isPlaced(BlockArgument argument) {
  return llvm::any_of(findConstraint(argument).getSharding().getDims(),
                      [&](dist::AxesAttr held) {
                        return llvm::any_of(axes, [&](StringRef axis) {
                          return held.contains(axis);
                        });
                      });
}

/// Classes of the same work and bytes are one decision: the layers of a model.
void DimChooser::tell() {
  struct Kind {
    std::string first;
    int64_t alike = 0;
  };
  std::map<std::tuple<int64_t, int64_t, bool>, Kind> kinds;
  llvm::SmallDenseSet<unsigned> seen;
  for (auto &[argument, dim] : dims) {
    unsigned number = classes.find(argument, dim);
    if (!llvm::is_contained(wanted, number) || !seen.insert(number).second)
      continue;
    const DimClasses::Class &each = classes.get(number);
    Kind &kind = kinds[{each.flops, each.bytes, chosen.contains(number)}];
    if (kind.alike++ == 0)
      kind.first =
          "dimension " + std::to_string(dim) + " of " +
          cast<FlatSymbolRefAttr>(getState(entry, argument)).getValue().str();
  }
  for (auto &[key, kind] : kinds) {
    auto [flops, bytes, isSplit] = key;
    auto getSeconds = [&, flops = flops, bytes = bytes](double ranks) {
      return cost::getSeconds(double(flops) / ranks +
                              (ranks > 1 ? kFlopsPerByte * double(bytes) : 0));
    };
    cost::Alternative split{"split", getSeconds(double(ranks)), std::nullopt,
                            "over " + std::to_string(ranks) + " ranks"};
    cost::Alternative whole{"whole", getSeconds(1), std::nullopt, ""};
    std::string of = kind.first;
    if (kind.alike > 1)
      of += " and " + std::to_string(kind.alike - 1) + " alike";
    bool isWorthwhile = double(flops) >= kLeastFlopsPerByte * double(bytes + 1);
    cost::tell(entry->getParentOfType<ModuleOp>(),
               {"tensor parallelism",
                of,
                isSplit ? split : whole,
                {isSplit ? whole : split},
                isSplit        ? "no dimensions that exclude it gain more"
                : isWorthwhile ? "it excludes dimensions that gain more"
                               : "too little work for its bytes"});
  }
}

DimChooser::Splits DimChooser::run(bool splitsVocabulary) {
  llvm::SmallDenseSet<unsigned> excluded = findPositions();
  if (!splitsVocabulary)
    excluded.insert_range(findVocabularies());
  llvm::SmallSetVector<unsigned, 16> candidates;
  for (BlockArgument argument : entry.getArguments()) {
    dist::ConstraintOp constraint = findConstraint(argument);
    if (!getState(entry, argument) || !constraint)
      continue;
    for (auto [dim, held] :
         llvm::enumerate(constraint.getSharding().getDims())) {
      unsigned number = classes.find(argument, dim);
      // What somebody has placed stays there, and excludes others.
      for (StringRef axis : axes)
        if (held.contains(axis))
          placed.insert(number);
      if (!held.empty())
        continue;
      dims.emplace_back(argument, dim);
      if (excluded.contains(number) || classes.get(number).size == 0)
        continue;
      if (classes.get(number).size % ranks == 0)
        candidates.insert(number);
      else
        uneven.insert({number, {argument, dim}});
    }
  }
  wanted = candidates.takeVector();
  chosen = choose(wanted);
  findKeyHeads(chosen);
  Splits splits;
  for (auto &[argument, dim] : dims) {
    unsigned number = classes.find(argument, dim);
    // What was placed by name may ask for two dimensions of a state that nobody
    // named: the first gets the axes.
    if ((chosen.contains(number) || shared.contains(number)) &&
        !isPlaced(argument))
      splits.insert(
          {getState(entry, argument), {dim, shared.contains(number)}});
  }
  return splits;
}

SmallVector<DimChooser::Uneven> DimChooser::getUneven() {
  SmallVector<unsigned> all = wanted;
  for (auto &[number, dim] : uneven)
    all.push_back(number);
  llvm::SetVector<unsigned> ofAll = choose(all);
  llvm::SmallDenseSet<unsigned> vocabularies = findVocabularies();
  SmallVector<Uneven> found;
  for (auto &[number, dim] : uneven)
    if (ofAll.contains(number) && !shared.contains(number))
      found.push_back({dim.first, dim.second, classes.get(number).size,
                       vocabularies.contains(number)});
  return found;
}
