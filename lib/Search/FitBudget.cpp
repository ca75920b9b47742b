// Solves each stage's table, tries what comes out, and corrects the budget by
// what the trial says.

#include "FitBudget.h"

using namespace mlir;
using namespace accel;
using namespace accel::search;

/// A prediction is out by a percent at most; one that comes as near to the
/// budget as this is made again of the whole program.
static constexpr double kNear = 0.03;
/// After so many trials that did not fit only the smallest choice is left.
static constexpr int kMostTrials = 12;

int64_t Fit::getPeak() const { return *llvm::max_element(bytes); }

namespace {
/// The search for one stage.
class StageSearch {
public:
  StageSearch(const StageTable &table, int64_t budget)
      : table(table), budget(budget), limit(budget) {
    propose();
  }

  bool isDone() const { return done; }
  bool isTooLarge() const { return !fitting; }
  /// What is to be tried, or what was found.
  const PolicyCounts &getCounts() const {
    return done && fitting ? *fitting : proposed;
  }
  int64_t getBytes() const { return fitting ? fittingBytes : least; }
  /// Of the work of what was found.
  double getBound() const {
    return boundWork(table, fitting ? fittingLimit : proposed.bytes)
        .value_or(0);
  }

  /// Of what was proposed.
  void hear(int64_t bytes) {
    if (done)
      return;
    ++trials;
    least = std::min(least, bytes);
    if (bytes <= budget) {
      fitting = proposed;
      fittingBytes = bytes;
      fittingLimit = std::max(proposed.bytes, std::min(limit, upper));
    }
    // By as much the table is out here.
    limit = budget - (bytes - proposed.bytes);
    if (bytes > budget) {
      upper = std::min(upper, proposed.bytes - 1);
      if (isSmallest) {
        done = true;
        return;
      }
    }
    propose();
    // Nothing faster is left, or known to be worth a trial.
    if (fitting && (proposed.work >= fitting->work || trials >= kMostTrials))
      done = true;
  }

private:
  void propose() {
    auto found = trials < kMostTrials
                     ? choosePolicies(table, std::min(limit, upper))
                     : std::nullopt;
    isSmallest = !found;
    if (!found)
      found = choosePolicies(table, getFewestBytes(table));
    proposed = *found;
    isSmallest |= proposed.bytes <= getFewestBytes(table);
  }

  const StageTable &table;
  int64_t budget, limit;
  int64_t upper = INT64_MAX; ///< larger ones did not fit
  int64_t least = INT64_MAX, fittingBytes = 0, fittingLimit = 0;
  PolicyCounts proposed;
  std::optional<PolicyCounts> fitting;
  bool isSmallest = false, done = false;
  int trials = 0;
};
} // namespace

FailureOr<Fit> search::fitBudget(ModuleOp module,
                                 const parallel::RecomputeChoices &choices,
                                 const PolicyTable &table, const Trier &trier,
                                 int64_t budget) {
  std::vector<StageSearch> stages;
  for (const StageTable &stage : table.getStages())
    stages.emplace_back(stage, budget);
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
