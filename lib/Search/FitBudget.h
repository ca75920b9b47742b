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

/// For each stage the exact optimum of its table (stages are apart: a step is
/// never slower for one whose tasks are shorter), tried, since a table adds up
/// what layers have at different moments.
///
/// Of a program of which nothing is left out trials are exact: the choices that
/// the table has near the budget are tried, the least work first, until one
/// fits. A larger budget never has more work. Of others each trial corrects the
/// table, until nothing that is worth a trial is known to fit; a trial that
/// comes near the budget is of the whole program.
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
