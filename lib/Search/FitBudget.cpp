// Solves each stage's table, tries what comes out, and corrects the budget by
// what the trial says.

#include "FitBudget.h"

#include "mlir/IR/Threading.h"

using namespace mlir;
using namespace accel;
using namespace accel::search;

/// After so many trials of which none fitted, the smallest choice is tried.
static constexpr int kMostTrials = 12, kMostScanned = 64;
/// What saves less than these parts of the work that fits, and of what whole
/// layers would take, is not tried.
static constexpr double kWorthOfChoice = 0.01, kWorthOfWhole = 0.002;
/// How much of the budget the table may be out by, at least.
static constexpr double kLeastSlack = 0.03;
/// So many stages make a trial of their own, on another thread.
static constexpr size_t kStagesOfTrial = 4;

int64_t Fit::getPeak() const { return *llvm::max_element(bytes); }

/// By how much the table may say too much of what fits: it adds up what layers
/// have at different moments.
static int64_t getSlack(const StageTable &table, int64_t budget) {
  int64_t layer = 0;
  for (const LayerClass &each : table.classes)
    for (const LayerClass::Choice &choice : each.choices)
      layer = std::max(layer, choice.bytes);
  return std::max(2 * layer, int64_t(kLeastSlack * double(budget)));
}

namespace {
/// The search for one stage. Where trials are exact, the choices of the table
/// from a little above the budget down, the least work first, up to the first
/// that fits: one that fits a smaller budget is among those of a larger one.
/// Where they are not, and take their time, the best of the table, each trial
/// correcting it, until nothing is left that does much less and may fit.
class StageSearch {
public:
  StageSearch(const StageTable &table, int64_t budget, bool isExact)
      : table(table), budget(budget), isExact(isExact) {
    if (isExact)
      limit = budget + getSlack(table, budget);
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
  /// Whether nothing is computed again in what is to be tried.
  bool isNone() const {
    for (auto [of, counts] : llvm::zip_equal(table.classes, getCounts().layers))
      for (auto [choice, layers] : llvm::zip_equal(of.choices, counts))
        if (choice.policy != 0 && layers > 0)
          return false;
    return true;
  }
  int64_t getBytes() const { return fitting ? fitting->bytes : smallest.bytes; }
  /// Of the work of what fits.
  double getBound() const {
    return boundWork(table, fitting ? fitting->limit : getFewestBytes(table))
        .value_or(0);
  }

  /// What a trial says of what was proposed.
  void hear(int64_t bytes) {
    ++trials;
    proposed.bytes = bytes;
    if (bytes < smallest.bytes)
      smallest = proposed;
    bool fits = bytes <= budget;
    if (fits && (!fitting || proposed.counts.work < fitting->counts.work))
      fitting = proposed;
    if (isExact) {
      limit = proposed.counts.bytes - 1;
      done = fitting || isLast;
    } else {
      if (!fits)
        refused.push_back(proposed.counts.layers);
      correct(bytes - proposed.counts.bytes);
      done = !fitting && isLast;
    }
    if (done)
      return;
    propose();
    done = fitting &&
           double(fitting->counts.work - proposed.counts.work) <=
               (isExact ? 0 : getWorthTrying(double(fitting->counts.work)));
  }

private:
  struct Proposal {
    PolicyCounts counts;
    int64_t limit = 0;         ///< of the table's bytes, when it was made
    int64_t bytes = INT64_MAX; ///< that a trial says
  };

  /// The next of the table; where all was tried, its smallest for the last.
  void propose() {
    bool goesOn = trials < (isExact ? kMostScanned : kMostTrials);
    int64_t most = isExact ? limit : budget, fewest = getFewestBytes(table);
    auto found = goesOn ? choosePolicies(table, most) : std::nullopt;
    while (found && llvm::is_contained(refused, found->layers)) {
      most = found->bytes - 1;
      found = choosePolicies(table, most);
    }
    isLast = !found || found->bytes <= fewest;
    if (!found) {
      most = fewest;
      found = choosePolicies(table, fewest);
      assert(found && "something has the fewest bytes");
    }
    proposed = {std::move(*found), most};
  }

  double getWorthTrying(double work) const {
    double whole = 0;
    for (const LayerClass &each : table.classes) {
      int64_t most = 0;
      for (const LayerClass::Choice &choice : each.choices)
        most = std::max(most, choice.work);
      whole += double(each.layers) * double(most);
    }
    return std::max(kWorthOfChoice * work, kWorthOfWhole * whole);
  }

  /// What the table adds up is out by so many bytes: most of all in what the
  /// policy needs beside that needs most.
  void correct(int64_t bytes) {
    int64_t *most = nullptr;
    for (auto [of, counts] :
         llvm::zip_equal(table.classes, proposed.counts.layers))
      for (auto [choice, layers] : llvm::zip_equal(of.choices, counts))
        if (int64_t *beside = &table.besides[choice.policy];
            layers > 0 && (!most || *beside > *most))
          most = beside;
    if (most)
      *most += bytes;
  }

  StageTable table;
  int64_t budget, limit = 0;
  bool isExact;
  std::vector<std::vector<std::vector<int64_t>>> refused;
  Proposal proposed, smallest;
  std::optional<Proposal> fitting;
  bool isLast = false, done = false;
  int trials = 0;
};
} // namespace

/// Trials of some stages each, on as many threads.
static FailureOr<Trial> tryStages(ModuleOp module, const Trier &trier,
                                  ArrayRef<unsigned> policyOfLayer,
                                  Extent extent, ArrayRef<int64_t> stages) {
  MLIRContext *context = module.getContext();
  size_t threads =
             context->isMultithreadingEnabled() ? context->getNumThreads() : 1,
         count = std::clamp(stages.size() / kStagesOfTrial, size_t(1), threads);
  std::vector<FailureOr<Trial>> parts(count, failure());
  parallelFor(context, 0, count, [&](size_t part) {
    size_t begin = stages.size() * part / count,
           end = stages.size() * (part + 1) / count;
    parts[part] = tryPlan(module, trier, policyOfLayer, extent,
                          stages.slice(begin, end - begin));
  });
  for (FailureOr<Trial> &part : parts) {
    if (failed(part))
      return failure();
    if (&part != &parts.front())
      llvm::append_range(parts.front()->stages, std::move(part->stages));
  }
  return std::move(parts.front());
}

FailureOr<Fit> search::fitBudget(ModuleOp module,
                                 const parallel::RecomputeChoices &choices,
                                 const PolicyTable &table, const Trier &trier,
                                 int64_t budget) {
  std::vector<StageSearch> stages;
  for (const StageTable &stage : table.getStages())
    stages.emplace_back(stage, budget, !table.isPrediction());
  Fit fit;
  auto assign = [&] {
    fit.policyOfLayer.assign(choices.getLayers().size(), 0);
    for (auto [number, stage] : llvm::enumerate(stages))
      table.assign(number, stage.getCounts(), fit.policyOfLayer);
  };
  auto isNear = [&](const Trial::Stage &stage) {
    return PolicyTable::isNear(stage.getBytes(), budget);
  };
  // What the trial of no policy has said of a stage need not be said again.
  for (auto [number, stage] : llvm::enumerate(stages)) {
    int64_t bytes = table.getBytesOfNone(number);
    bool isKnown = !table.isPrediction() || !PolicyTable::isNear(bytes, budget);
    if (isKnown && bytes <= budget && stage.isNone())
      stage.hear(bytes);
  }
  Extent extent = table.getExtent();
  for (;;) {
    SmallVector<int64_t> open;
    for (auto [number, stage] : llvm::enumerate(stages))
      if (!stage.isDone())
        open.push_back(number);
    if (open.empty())
      break;
    assign();
    auto tried = tryStages(module, trier, fit.policyOfLayer, extent, open);
    if (succeeded(tried) && tried->isShortened &&
        llvm::any_of(tried->stages, isNear)) {
      // Corrected, the next ones come nearer still.
      extent = Extent::Whole;
      tried = tryStages(module, trier, fit.policyOfLayer, extent, open);
    }
    if (failed(tried))
      return failure();
    for (const Trial::Stage &found : tried->stages)
      stages[found.stage].hear(found.getBytes());
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
