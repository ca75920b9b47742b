// Decides as each candidate does, and fits what is computed again.

#include "BudgetSearch.h"

#include "ScheduleChoice.h"
#include "dialects/Accel/Accel.h"
#include "dialects/NN/Entry.h"
#include "lib/Cost/Work.h"
#include "mlir/IR/OwningOpRef.h"

using namespace mlir;
using namespace accel;
using namespace accel::search;

LogicalResult BudgetSearch::prepare(const OpenDecisions &open, bool isTimed) {
  auto layout = Layout::of(module);
  if (failed(layout))
    return failure();
  if (isTimed || open.any()) {
    // Nothing is computed again in what all else is compared with.
    OwningOpRef<ModuleOp> plain(module.clone());
    if (choices)
      parallel::RecomputeChoices::clearMarks(
          nn::findEntry(*plain, nn::EntryKind::step));
    auto measured = measureTasks(*plain, trier.buildSplit, layout->stages,
                                 layout->microBatches);
    if (failed(measured))
      return failure();
    problem = std::move(*measured);
  }
  candidates.assign(1, Candidate());
  if (open.any()) {
    auto listed = listCandidates(step, *layout, open, *problem);
    if (failed(listed))
      return failure();
    candidates = std::move(*listed);
  }
  if (isTimed && !candidates.front().schedule) {
    auto whole = playStep(module, *layout, *problem);
    if (failed(whole))
      return failure();
    for (Candidate &candidate : candidates)
      candidate.seconds += cost::getSeconds(*whole);
  }
  states.resize(candidates.size());
  for (auto [candidate, state] : llvm::zip_equal(candidates, states)) {
    if (failed(candidate.apply(module)))
      return failure();
    auto own = Layout::of(module);
    if (failed(own))
      return failure();
    state.layout = std::move(*own);
  }
  return candidates.front().apply(module);
}

AlternativeSearch BudgetSearch::solve(int64_t bytes, bool isOnly) {
  for (State &state : states)
    state.solution.reset();
  return searchAlternatives(
      llvm::map_to_vector(
          candidates,
          [](const Candidate &candidate) { return candidate.seconds; }),
      [&](size_t candidate) -> std::optional<double> {
        if (failed(candidates[candidate].apply(module)) ||
            (choices && failed(measure(candidate, isOnly ? bytes : 0))))
          return std::nullopt;
        return solveOne(candidate, bytes);
      });
}

/// A table for one budget is only asked once.
LogicalResult BudgetSearch::measure(size_t candidate, int64_t bytes) {
  State &state = states[candidate];
  if (state.table)
    return success();
  auto table =
      PolicyTable::measure(module, *choices, state.layout, trier, bytes);
  if (failed(table))
    return failure();
  state.table = std::move(*table);
  return success();
}

LogicalResult BudgetSearch::findLeast(size_t candidate) {
  State &state = states[candidate];
  if (state.least)
    return success();
  auto least = search::findLeast(module, *choices, *state.table, trier);
  if (failed(least))
    return failure();
  state.least = std::move(*least);
  return success();
}

/// The least work that fits.
FailureOr<Fit> BudgetSearch::fitOne(size_t candidate, int64_t bytes) {
  State &state = states[candidate];
  auto fit = fitBudget(module, *choices, *state.table, trier, bytes);
  if (failed(fit) || fit->tooLarge.empty())
    return fit;
  // The smallest is not far from any budget that it fits.
  if (failed(findLeast(candidate)) || state.least->trial.getPeak() > bytes)
    return failure();
  return state.least->fit;
}

/// The marks that there are.
FailureOr<Fit> BudgetSearch::holdOne(size_t candidate, int64_t bytes) {
  auto trial = tryPlan(module, trier, {}, Extent::Whole);
  if (failed(trial))
    return failure();
  if (trial->getPeak() > bytes) {
    states[candidate].held = trial->getLargest();
    return failure();
  }
  Fit fit;
  for (const Trial::Stage &stage : trial->stages)
    fit.bytes.push_back(stage.getBytes());
  return fit;
}

/// Whether what lies on the host and in files fits budgets of their own.
static bool fitsElsewhere(ModuleOp module, const Trial &trial) {
  auto decisions = module->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
  for (const Trial::Stage &stage : trial.stages)
    for (StringRef key : {kHostBudgetKey, kNvmeBudgetKey}) {
      int64_t bytes = 0;
      for (const cost::PredictedArena &arena : stage.arenas)
        if (getBudgetKey(arena.space, decisions) == key)
          bytes += arena.bytes;
      if (auto most = decisions.getAs<IntegerAttr>(key);
          most && bytes > most.getInt())
        return false;
    }
  return true;
}

std::optional<double> BudgetSearch::solveOne(size_t number, int64_t bytes) {
  State &state = states[number];
  state.isTooLargeElsewhere = false;
  const Candidate &candidate = candidates[number];
  auto fit = choices ? fitOne(number, bytes) : holdOne(number, bytes);
  if (failed(fit))
    return std::nullopt;
  Solution solution{std::move(*fit)};
  auto again = getSecondsAgain(number, solution.fit);
  if (failed(again))
    return std::nullopt;
  solution.secondsAgain = *again;
  if (candidate.copies()) {
    auto trial =
        tryPlan(module, trier, solution.fit.policyOfLayer, Extent::Whole);
    if (failed(trial))
      return std::nullopt;
    if (!fitsElsewhere(module, *trial)) {
      state.isTooLargeElsewhere = true;
      return std::nullopt;
    }
    // Stages wait beside each other.
    for (const Trial::Stage &stage : trial->stages)
      solution.secondsOfCopies =
          std::max(solution.secondsOfCopies, stage.secondsOfCopies);
  }
  state.solution = std::move(solution);
  return candidate.seconds + state.solution->secondsAgain +
         state.solution->secondsOfCopies;
}

FailureOr<double> BudgetSearch::getSecondsAgain(size_t candidate,
                                                const Fit &fit) {
  if (!problem || !choices)
    return 0.0;
  const State &state = states[candidate];
  pipeline::Problem longer = *problem;
  for (auto [layer, policy] :
       llvm::zip_equal(choices->getLayers(), fit.policyOfLayer))
    longer.costs.chunks[layer.chunk].addToBackward(
        state.table->getWork(layer.kind, policy));
  auto before = playStep(module, state.layout, *problem);
  auto after = playStep(module, state.layout, longer);
  if (failed(before) || failed(after))
    return failure();
  // With other times transfers may be posted otherwise.
  return cost::getSeconds(std::max(0.0, *after - *before));
}

const PolicyTable *BudgetSearch::getTable(size_t candidate) const {
  const State &state = states[candidate];
  return state.table ? &*state.table : nullptr;
}

const Trial::Stage *BudgetSearch::getLeast(size_t candidate) const {
  const State &state = states[candidate];
  if (state.least)
    return &state.least->trial.getLargest();
  return state.held ? &*state.held : nullptr;
}

FailureOr<int64_t> BudgetSearch::findLeastBytes() {
  std::optional<int64_t> fewest;
  for (size_t number = 0; number < states.size(); ++number) {
    if (failed(candidates[number].apply(module)) ||
        failed(measure(number, 0)) || failed(findLeast(number)))
      continue;
    int64_t bytes = getLeast(number)->getBytes();
    fewest = std::min(fewest.value_or(bytes), bytes);
  }
  if (!fewest)
    return failure();
  return *fewest;
}
