// The least time of a step that fits a budget of memory: over the candidates of
// what is decided beside recomputation (Candidates.h), and what is computed
// again with each (FitBudget.h).

#ifndef ACCEL_LIB_SEARCH_BUDGETSEARCH_H
#define ACCEL_LIB_SEARCH_BUDGETSEARCH_H

#include "Alternatives.h"
#include "Candidates.h"
#include "FitBudget.h"

namespace accel::search {

/// What fits of a candidate.
struct Solution {
  Fit fit; ///< of which nothing but the bytes is there where recomputation is
           ///< not open
  /// By how much a step takes longer for what is computed again, where the step
  /// was measured, and for copies.
  double secondsAgain = 0, secondsOfCopies = 0;
};

/// Of a module in phase `dist` whose decisions are made but for what is open.
/// The module's decisions are those of the candidate that was solved last.
class BudgetSearch {
public:
  /// `choices` are empty where recomputation is not open: the marks that there
  /// are stay. Both outlive the search.
  BudgetSearch(mlir::ModuleOp module, mlir::func::FuncOp step,
               const parallel::RecomputeChoices *choices, const Trier &trier)
      : module(module), step(step), choices(choices), trier(trier) {}

  /// Lists the candidates, and measures the step if there are several. Their
  /// seconds are of a whole step where `isTimed`. Errors: those of
  /// `measureTasks` and `listCandidates`.
  mlir::LogicalResult prepare(const OpenDecisions &open, bool isTimed = false);
  llvm::ArrayRef<Candidate> getCandidates() const { return candidates; }
  /// What the tasks of the step take where nothing is computed again that is
  /// open; none where it is not measured.
  const std::optional<pipeline::Problem> &getProblem() const { return problem; }

  /// The candidate that takes the least time in so many bytes, by the bound
  /// that it has (Alternatives.h). Tables are kept from call to call unless
  /// `isOnly`: of a single budget they need not be of policies that it has no
  /// use for.
  AlternativeSearch solve(int64_t bytes, bool isOnly = false);

  /// Of a candidate that was solved, as the last call left it.
  const Solution &getSolution(size_t candidate) const {
    return *states[candidate].solution;
  }
  /// Null where recomputation is not open, or nothing can be planned.
  const PolicyTable *getTable(size_t candidate) const;
  /// The stage that has most of the least that the candidate can have; null
  /// where that was not looked for.
  const Trial::Stage *getLeast(size_t candidate) const;
  /// Whether it fits but for a budget of the host's memory, or of a file.
  bool isTooLargeElsewhere(size_t candidate) const {
    return states[candidate].isTooLargeElsewhere;
  }
  /// The least bytes of all candidates. Fails where nobody can plan any.
  mlir::FailureOr<int64_t> findLeastBytes();

  /// How a candidate cuts the step.
  const Layout &getLayout(size_t candidate) const {
    return states[candidate].layout;
  }

private:
  struct State {
    Layout layout;
    std::optional<PolicyTable> table;
    std::optional<Least> least;
    std::optional<Trial::Stage> held; ///< of marks that do not fit
    std::optional<Solution> solution;
    bool isTooLargeElsewhere = false;
  };

  mlir::LogicalResult measure(size_t candidate, int64_t bytes);
  mlir::LogicalResult findLeast(size_t candidate);
  std::optional<double> solveOne(size_t candidate, int64_t bytes);
  mlir::FailureOr<Fit> fitOne(size_t candidate, int64_t bytes);
  mlir::FailureOr<Fit> holdOne(size_t candidate, int64_t bytes);
  mlir::FailureOr<double> getSecondsAgain(size_t candidate, const Fit &fit);

  mlir::ModuleOp module;
  mlir::func::FuncOp step;
  const parallel::RecomputeChoices *choices;
  const Trier &trier;
  std::vector<Candidate> candidates;
  std::optional<pipeline::Problem> problem;
  std::vector<State> states;
};

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_BUDGETSEARCH_H
