// Which layers are computed again, so that each stage fits a budget of memory
// and the least work is done twice.

#ifndef ACCEL_LIB_SEARCH_FITBUDGET_H
#define ACCEL_LIB_SEARCH_FITBUDGET_H

#include "PolicyTable.h"

namespace accel::search {

/// A choice for all stages, and what a trial says that it takes.
struct Fit {
  llvm::SmallVector<unsigned> policyOfLayer;
  std::vector<PolicyCounts> counts; ///< by stage
  std::vector<int64_t> bytes;       ///< of a rank, by stage
  /// By stage: the work that no choice is below that the table, as the last
  /// trial has corrected it, says to fit.
  std::vector<double> bounds;
  /// The stages of which nothing fits; of these `bytes` is the least.
  llvm::SmallVector<size_t> tooLarge;

  /// Of a rank of the stage that has most.
  int64_t getPeak() const;
};

/// The exact optimum of the table for each stage (stages are apart: a step is
/// never slower for one whose tasks are shorter), tried; where a trial says
/// more or less than the table, the next best until no faster choice is known
/// to fit. A trial that comes near the budget is of the whole program, whose
/// plan has the same bytes.
///
/// A larger budget never has more work: what fits a smaller one fits.
///
/// Fails without a word where the program cannot be planned.
mlir::FailureOr<Fit> fitBudget(mlir::ModuleOp module,
                               const parallel::RecomputeChoices &choices,
                               const PolicyTable &table, const Trier &trier,
                               int64_t budget);

/// The smallest that the search finds, and the trial of the whole program: a
/// budget of its peak is met, one of a byte less is not.
struct Least {
  Fit fit;
  Trial trial;
};
mlir::FailureOr<Least> findLeast(mlir::ModuleOp module,
                                 const parallel::RecomputeChoices &choices,
                                 const PolicyTable &table, const Trier &trier);

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_FITBUDGET_H
