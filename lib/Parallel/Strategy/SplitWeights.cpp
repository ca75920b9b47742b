// Tensor parallelism, found from structure: splits over the axis `tp` the
// dimensions of weights from which ranks gain most for what they exchange.

#include "DimClasses.h"
#include "TensorAxes.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/Entry.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_SPLITWEIGHTSPASS
#include "lib/Parallel/Passes.h.inc"

/// What a rank computes in the time in which a byte reaches another: from some
/// 60 where cores share memory to 1,000 between GPUs. It weighs classes that
/// exclude each other.
static constexpr double kFlopsPerByte = 256;
/// A class that saves less for a byte is not split. (The two products of an MLP
/// of width d save 3 d.)
static constexpr double kLeastFlopsPerByte = 4;

namespace {
/// The dimensions of each state that are split, by its name; and whether it is
/// with key heads, that ranks share.
using Splits =
    llvm::DenseMap<Attribute, SmallVector<std::pair<unsigned, bool>, 2>>;

/// Chooses on one entry.
class Chooser {
public:
  Chooser(func::FuncOp entry, dist::MeshOp mesh)
      : entry(entry), axes(getTensorAxes(mesh)), ranks(countTensorRanks(mesh)),
        keyRanks(mesh.findAxisSize(kKeyHeadsAxis).value_or(1)),
        plain(entry, nullptr, mesh), fused(entry, plain),
        classes(entry, &fused, mesh) {}
  Splits run(bool splitsVocabulary);
  /// Says which classes would be split if their sizes allowed it; false if
  /// there is one.
  bool reportDropped(bool strict);

private:
  llvm::SmallDenseSet<unsigned> findPositions();
  /// The work saved for each byte.
  double getRatio(unsigned number) {
    const DimClasses::Class &each = classes.get(number);
    return double(each.flops) / double(each.bytes + 1);
  }
  /// The work that is done in pieces, times the share of the time in which it
  /// is done and not waited for.
  double getGain(unsigned number) {
    return double(classes.get(number).flops) /
           (1 + kFlopsPerByte / (getRatio(number) + 1));
  }
  /// Those of `chosen` that a class excludes.
  SmallVector<unsigned> findRivals(unsigned number,
                                   const llvm::SetVector<unsigned> &chosen);
  llvm::SetVector<unsigned> choose(ArrayRef<unsigned> candidates);
  llvm::SmallDenseSet<unsigned> findVocabularies();
  void findKeyHeads(const llvm::SetVector<unsigned> &chosen);

  func::FuncOp entry;
  SmallVector<StringRef, 2> axes;
  int64_t ranks, keyRanks;
  DimClasses plain; ///< of which some are parts of others
  FusedDims fused;
  DimClasses classes;
  llvm::SmallDenseSet<unsigned> placed; ///< what somebody has split
  llvm::SmallDenseSet<unsigned> shared; ///< key heads that ranks share
  SmallVector<unsigned> wanted;         ///< what may be split
  /// What may not, for its size, each with one of its dimensions.
  llvm::MapVector<unsigned, std::pair<BlockArgument, unsigned>> uneven;
};
} // namespace

/// What stands on a state's argument; null if something else reads it.
static dist::ConstraintOp findConstraint(BlockArgument argument) {
  return argument.hasOneUse()
             ? dyn_cast<dist::ConstraintOp>(*argument.user_begin())
             : dist::ConstraintOp();
}

static Attribute getState(func::FuncOp entry, BlockArgument argument) {
  return entry.getArgAttr(argument.getArgNumber(), nn::kStateAttr);
}

SmallVector<unsigned>
Chooser::findRivals(unsigned number, const llvm::SetVector<unsigned> &chosen) {
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
llvm::SetVector<unsigned> Chooser::choose(ArrayRef<unsigned> candidates) {
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
llvm::SmallDenseSet<unsigned> Chooser::findPositions() {
  llvm::SmallDenseSet<unsigned> positions;
  entry.walk([&](nn::AttentionOp op) {
    positions.insert(classes.find(op.getQuery(), 2));
    positions.insert(classes.find(op.getKey(), 2));
  });
  return positions;
}

/// What indices point into, and what probabilities are of.
llvm::SmallDenseSet<unsigned> Chooser::findVocabularies() {
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
void Chooser::findKeyHeads(const llvm::SetVector<unsigned> &chosen) {
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

Splits Chooser::run(bool splitsVocabulary) {
  llvm::SmallDenseSet<unsigned> excluded = findPositions();
  if (!splitsVocabulary)
    excluded.insert_range(findVocabularies());
  SmallVector<std::pair<BlockArgument, unsigned>> dims;
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
      if (excluded.contains(number))
        continue;
      if (classes.get(number).size == 0)
        continue;
      if (classes.get(number).size % ranks == 0)
        candidates.insert(number);
      else
        uneven.insert({number, {argument, dim}});
    }
  }
  wanted = candidates.takeVector();
  llvm::SetVector<unsigned> chosen = choose(wanted);
  findKeyHeads(chosen);
  Splits splits;
  for (auto &[argument, dim] : dims) {
    unsigned number = classes.find(argument, dim);
    if (chosen.contains(number) || shared.contains(number))
      splits[getState(entry, argument)].push_back(
          {dim, shared.contains(number)});
  }
  return splits;
}

bool Chooser::reportDropped(bool strict) {
  SmallVector<unsigned> all = wanted;
  for (auto &[number, dim] : uneven)
    all.push_back(number);
  llvm::SetVector<unsigned> chosen = choose(all);
  bool isGood = true;
  for (auto &[number, dim] : uneven) {
    if (!chosen.contains(number) || shared.contains(number))
      continue;
    isGood = false;
    Location loc = dim.first.getLoc();
    int64_t whole =
        cast<RankedTensorType>(dim.first.getType()).getDimSize(dim.second);
    int64_t parts = classes.get(number).size;
    InFlightDiagnostic told = strict ? emitError(loc) : emitRemark(loc);
    told << "dimension " << dim.second << " of state "
         << getState(entry, dim.first) << " has size " << whole;
    if (parts != whole)
      told << ", in " << parts << " parts of " << whole / parts
           << " that stay together";
    told << ", which the " << ranks << " ranks of '"
         << dist::MeshOp::kTensorAxis << "' do not divide: it stays whole";
  }
  return isGood;
}

/// Says on the arguments of an entry what was chosen of their states.
static void split(func::FuncOp entry, const Splits &splits,
                  ArrayRef<StringRef> axes) {
  MLIRContext *context = entry.getContext();
  for (BlockArgument argument : entry.getArguments()) {
    auto found = splits.find(getState(entry, argument));
    dist::ConstraintOp constraint = findConstraint(argument);
    if (found == splits.end() || !constraint)
      continue;
    SmallVector<dist::AxesAttr> dims(constraint.getSharding().getDims());
    for (auto [dim, isShared] : found->second)
      dims[dim] =
          dist::AxesAttr::get(context, isShared ? axes.take_front() : axes);
    constraint.setShardingAttr(dist::ShardingAttr::get(
        context, constraint.getSharding().getMesh(), dims));
  }
}

namespace {
struct SplitWeightsPass : impl::SplitWeightsPassBase<SplitWeightsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    dist::MeshOp mesh = dist::MeshOp::of(module);
    if (countTensorRanks(mesh) == 1)
      return;
    // A step reads all that others read, and has the most to split.
    func::FuncOp chosenOn = nn::findEntry(module, nn::EntryKind::step);
    SmallVector<func::FuncOp> entries = nn::getEntries(module);
    if (!chosenOn && !entries.empty())
      chosenOn = entries.front();
    if (!chosenOn)
      return;
    Chooser chooser(chosenOn, mesh);
    Splits splits = chooser.run(vocabulary);
    if (!chooser.reportDropped(strict) && strict)
      return signalPassFailure();
    for (func::FuncOp entry : entries)
      split(entry, splits, getTensorAxes(mesh));
  }
};
} // namespace
} // namespace accel::parallel
