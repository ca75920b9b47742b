// Scatters each unit's gradients over the ranks when the backward has made
// them, so that no rank holds all of them whole.

#include "GatherUnits.h"
#include "GradientOps.h"
#include "NarrowedWeights.h"
#include "dialects/Accel/Zero.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/Entry.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_SCATTERGRADIENTSPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
/// A term of a gradient: what one use of the weight contributes.
struct Term {
  Value value;
  unsigned sum, unit = 0;
};

/// One step.
class GradientScatterer {
public:
  explicit GradientScatterer(func::FuncOp step) : step(step), ops(step) {}

  void run() {
    findSums();
    if (sums.empty())
      return;
    collectUses();
    GatherUnits units(uses, names);
    findTerms(units);
    for (unsigned sum = 0; sum < sums.size(); ++sum)
      scatter(sum, units);
    for (nn::AddOp add : adds)
      if (add->use_empty())
        add.erase();
  }

private:
  void findSums();
  void collectUses();
  void collectReaders(Value weight, unsigned number);
  void collectTerms(Value added, unsigned sum);
  void findTerms(const GatherUnits &units);
  void scatter(unsigned number, const GatherUnits &units);

  func::FuncOp step;
  GradientOps ops;
  SmallVector<StringRef> names;      ///< of the weights
  SmallVector<dist::ReshardOp> sums; ///< over ranks
  SmallVector<unsigned> weights;     ///< whose gradient each sum is of
  SmallVector<GatherUnits::Use> uses;
  SmallVector<Term> terms;
  SmallVector<nn::AddOp> adds; ///< of terms, one before what it is made of
};
} // namespace

/// Whether a reshard turns terms of ranks into pieces of their sum.
static bool isScatter(dist::ReshardOp sum) {
  auto from = dist::ShardingAttr::of(sum.getInput().getType());
  auto to = dist::ShardingAttr::of(sum.getType());
  return llvm::any_of(from.getPartial().getNames(), [&](StringAttr axis) {
    return llvm::any_of(to.getDims(),
                        [&](dist::AxesAttr dim) { return dim.contains(axis); });
  });
}

/// The sum, or move, in front of one; behind which micro-batches may be summed.
static dist::ReshardOp findBefore(dist::ReshardOp sum) {
  Operation *before = sum.getInput().getDefiningOp();
  if (auto total = dyn_cast_if_present<dist::AccumulateOp>(before))
    before = total.getInput().getDefiningOp();
  return dyn_cast_if_present<dist::ReshardOp>(before);
}

void GradientScatterer::findSums() {
  llvm::SmallDenseSet<Operation *> seen;
  step.walk([&](nn::GradientOp gradient) {
    for (dist::ReshardOp sum : findGradientSums(gradient)) {
      while (sum && !isScatter(sum))
        sum = findBefore(sum);
      if (!sum || !seen.insert(sum).second)
        continue;
      sums.push_back(sum);
      weights.push_back(names.size());
    }
    names.push_back(gradient.getState());
  });
}

/// Through what rounds or gathers it.
void GradientScatterer::collectReaders(Value weight, unsigned number) {
  for (OpOperand &use : weight.getUses()) {
    Operation *reader = use.getOwner();
    if (isa<dist::ReshardOp>(reader) || leadsToNarrowing(use))
      collectReaders(reader->getResult(0), number);
    else if (ops.forward.contains(reader))
      uses.push_back({&use, number});
  }
}

void GradientScatterer::collectUses() {
  llvm::StringMap<unsigned> numbers;
  for (auto [number, name] : llvm::enumerate(names))
    numbers[name] = number;
  for (BlockArgument argument : step.getArguments())
    if (auto state = step.getArgAttrOfType<FlatSymbolRefAttr>(
            argument.getArgNumber(), nn::kStateAttr))
      if (auto found = numbers.find(state.getValue()); found != numbers.end())
        collectReaders(argument, found->second);
  llvm::sort(uses, [](const GatherUnits::Use &lhs,
                      const GatherUnits::Use &rhs) {
    Operation *first = lhs.first->getOwner(), *second = rhs.first->getOwner();
    return first == second
               ? lhs.first->getOperandNumber() < rhs.first->getOperandNumber()
               : first->isBeforeInBlock(second);
  });
}

/// Moves what only widens or views a term right behind it: the gradient of a
/// cast at the head of the forward stands at the end of the backward. What is
/// partial is no argument.
static void hoist(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isa<nn::CastOp>(op) && !isView(op))
    return;
  Value source = op->getOperand(0);
  hoist(source);
  op->moveAfter(source.getDefiningOp());
}

void GradientScatterer::collectTerms(Value added, unsigned sum) {
  hoist(added);
  auto add = added.getDefiningOp<nn::AddOp>();
  if (!add || !add->hasOneUse()) {
    terms.push_back({added, sum});
    return;
  }
  adds.push_back(add);
  collectTerms(add.getLhs(), sum);
  collectTerms(add.getRhs(), sum);
}

/// The backward makes a gradient's terms where it comes by the uses.
void GradientScatterer::findTerms(const GatherUnits &units) {
  for (auto [number, sum] : llvm::enumerate(sums))
    collectTerms(sum.getInput(), number);
  llvm::stable_sort(terms, [](const Term &lhs, const Term &rhs) {
    return lhs.value.getDefiningOp()->isBeforeInBlock(
        rhs.value.getDefiningOp());
  });
  SmallVector<unsigned> order;
  for (const Term &term : terms)
    order.push_back(weights[term.sum]);
  for (auto [term, unit] : llvm::zip_equal(terms, units.inBackward(order)))
    term.unit = unit;
}

/// One scatter for the terms of each unit, right behind the last of them; what
/// is left to add are pieces.
void GradientScatterer::scatter(unsigned number, const GatherUnits &units) {
  dist::ReshardOp sum = sums[number];
  OpBuilder builder(sum);
  auto scatterUnit = [&](Value whole, unsigned unit) {
    builder.setInsertionPointAfterValue(whole);
    auto made = cast<dist::ReshardOp>(builder.clone(*sum));
    made.getInputMutable().assign(whole);
    made->setAttr(dist::kUnitAttr, builder.getStringAttr(units.getName(unit)));
    return made.getResult();
  };
  auto add = [&](Value lhs, Value rhs) -> Value {
    if (!lhs)
      return rhs;
    builder.setInsertionPointAfterValue(rhs);
    return nn::AddOp::create(builder, sum.getLoc(), lhs.getType(), lhs, rhs);
  };
  SmallVector<Term> mine;
  llvm::copy_if(terms, std::back_inserter(mine),
                [&](const Term &term) { return term.sum == number; });
  Value pieces;
  if (llvm::all_of(mine, [&](const Term &term) {
        return term.unit == mine.front().unit;
      })) {
    pieces = scatterUnit(sum.getInput(), mine.front().unit);
  } else {
    for (size_t begin = 0, end; begin < mine.size(); begin = end) {
      Value whole;
      for (end = begin; end < mine.size() && mine[end].unit == mine[begin].unit;
           ++end)
        whole = add(whole, mine[end].value);
      pieces = add(pieces, scatterUnit(whole, mine[begin].unit));
    }
  }
  sum.replaceAllUsesWith(pieces);
  sum.erase();
}

namespace {
struct ScatterGradientsPass
    : impl::ScatterGradientsPassBase<ScatterGradientsPass> {
  using Base::Base;

  void runInOrder() override {
    int64_t stage = getZeroStage(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(nn::kEntryAttr) && !function.isExternal()) {
        if (failed(nn::requireTypes(function, /*placed=*/true)))
          return signalPassFailure();
        if (stage >= 2) // else once a step, where `dist-materialize` has put it
          GradientScatterer(function).run();
      }
  }
};
} // namespace
} // namespace accel::parallel
