// Solves each stage's table, tries what comes out, and corrects the budget by
// what the trial says.

#include "FitBudget.h"

using namespace mlir;
using namespace accel;
using namespace accel::search;

/// A prediction of a shortened program that comes as near to the budget is made
/// again of the whole one.
static constexpr double kNear = 0.03;
/// After so many trials of which none fitted, the smallest choice is tried.
static constexpr int kMostTrials = 12, kMostScanned = 64;

int64_t Fit::getPeak() const { return *llvm::max_element(bytes); }

/// By how much the table may say too much of what fits: it adds up what layers
/// have at different moments.
static int64_t getSlack(const StageTable &table, int64_t budget) {
  int64_t layer = 0;
  for (const LayerClass &each : table.classes)
    for (const LayerClass::Choice &choice : each.choices)
      layer = std::max(layer, choice.bytes);
  return std::max(2 * layer, int64_t(kNear * double(budget)));
}

namespace {
/// The search for one stage. Where trials are exact, the choices of the table
/// from a little above the budget down, the least work first, up to the first
/// that fits: one that fits a smaller budget is among those of a larger one.
/// Where they are not, and take their time, the best of the table, corrected by
/// as much as the last trial says that the table is out.
class StageSearch {
public:
  StageSearch(const StageTable &table, int64_t budget, bool isExact)
      : table(table), budget(budget), limit(budget), isExact(isExact) {
    if (isExact)
      limit = upper = budget + getSlack(table, budget);
    propose();
  }

  bool isDone() const { return done; }
  bool isTooLarge() const { return !fitting; }
  /// What is to be tried; once that is done, what fits, or else the smallest.
  const PolicyCounts &getCounts() const {
    return !done     ? proposed.counts
           : fitting ? fitting->counts
                     : smallest.counts;
  }
  int64_t getBytes() const { return fitting ? fitting->bytes : smallest.bytes; }
  /// Of the work of what fits.
  double getBound() const {
    return boundWork(table, fitting ? fitting->limit : getFewestBytes(table))
        .value_or(0);
  }

  /// What a trial says of what was proposed.
  void hear(int64_t bytes) {
    if (done) {
      // Of the whole program, perhaps, for another stage's sake.
      (fitting ? *fitting : smallest).bytes = bytes;
      return;
    }
    ++trials;
    proposed.bytes = bytes;
    if (bytes < smallest.bytes)
      smallest = proposed;
    if (bytes <= budget)
      fitting = proposed;
    else
      upper = std::min(upper, proposed.counts.bytes - 1);
    limit = isExact ? upper : budget - (bytes - proposed.counts.bytes);
    done = fitting ? isExact || trials >= kMostTrials : isLast;
    if (done)
      return;
    propose();
    // Nothing faster is left.
    done = fitting && proposed.counts.work >= fitting->counts.work;
  }

private:
  struct Proposal {
    PolicyCounts counts;
    int64_t limit = 0;         ///< of the table's bytes, when it was made
    int64_t bytes = INT64_MAX; ///< that a trial says
  };

  void propose() {
    bool goesOn = trials < (isExact ? kMostScanned : kMostTrials);
    int64_t most = std::min(limit, upper), fewest = getFewestBytes(table);
    auto found = goesOn ? choosePolicies(table, most) : std::nullopt;
    isLast = !found || found->bytes <= fewest;
    if (!found) {
      most = fewest;
      found = choosePolicies(table, fewest);
      assert(found && "something has the fewest bytes");
    }
    proposed = {std::move(*found), most};
  }

  const StageTable &table;
  int64_t budget, limit;
  bool isExact;
  int64_t upper = INT64_MAX; ///< larger ones did not fit
  Proposal proposed, smallest;
  std::optional<Proposal> fitting;
  bool isLast = false, done = false;
  int trials = 0;
};
} // namespace

FailureOr<Fit> search::fitBudget(ModuleOp module,
                                 const parallel::RecomputeChoices &choices,
                                 const PolicyTable &table, const Trier &trier,
                                 int64_t budget) {
  std::vector<StageSearch> stages;
  for (const StageTable &stage : table.getStages())
    stages.emplace_back(stage, budget, !table.isShortened());
  Fit fit;
  auto assign = [&] {
    fit.policyOfLayer.assign(choices.getLayers().size(), 0);
    for (auto [number, stage] : llvm::enumerate(stages))
      table.assign(number, stage.getCounts(), fit.policyOfLayer);
  };
  auto isNear = [&](const Trial::Stage &stage) {
    return std::abs(double(stage.getBytes() - budget)) <=
           kNear * double(budget);
  };
  Extent extent = Extent::Shortened;
  while (
      llvm::any_of(stages, [](const auto &each) { return !each.isDone(); })) {
    assign();
    auto tried = tryPlan(module, trier, fit.policyOfLayer, extent);
    if (succeeded(tried) && tried->isShortened &&
        llvm::any_of(tried->stages, isNear)) {
      // Corrected, the next ones come nearer still.
      extent = Extent::Whole;
      tried = tryPlan(module, trier, fit.policyOfLayer, extent);
    }
    if (failed(tried))
      return failure();
    for (auto [stage, found] : llvm::zip_equal(stages, tried->stages))
      stage.hear(found.getBytes());
  }
  assign();
  for (auto [number, stage] : llvm::enumerate(stages)) {
    fit.counts.push_back(stage.getCounts());
    fit.bytes.push_back(stage.getBytes());
    fit.bounds.push_back(stage.getBound());
    if (stage.isTooLarge())
      fit.tooLarge.push_back(number);
  }
  return fit;
}

FailureOr<Least> search::findLeast(ModuleOp module,
                                   const parallel::RecomputeChoices &choices,
                                   const PolicyTable &table,
                                   const Trier &trier) {
  std::optional<Least> least;
  for (int64_t budget = 0;;) {
    auto fit = fitBudget(module, choices, table, trier, budget);
    if (failed(fit))
      return failure();
    if (least && !fit->tooLarge.empty())
      return std::move(*least);
    auto trial = tryPlan(module, trier, fit->policyOfLayer, Extent::Whole);
    if (failed(trial))
      return failure();
    if (least && trial->getPeak() >= least->trial.getPeak())
      return std::move(*least);
    budget = trial->getPeak() - 1;
    least = Least{std::move(*fit), std::move(*trial)};
  }
}
