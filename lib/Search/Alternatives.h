// The cheapest of some alternatives, each of which is dear to solve and cheap
// to bound: what a memory budget decides beside recomputation.

#ifndef ACCEL_LIB_SEARCH_ALTERNATIVES_H
#define ACCEL_LIB_SEARCH_ALTERNATIVES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <vector>

namespace accel::search {

struct AlternativeSearch {
  /// Of each alternative what came out: its cost; none where nothing of it fits
  /// or where it was not solved.
  std::vector<std::optional<double>> costs;
  /// By alternative: whether it was solved. Of the others the bound says that
  /// they are not cheaper than the best.
  std::vector<bool> isSolved;
  std::optional<size_t> best; ///< none where nothing fits
};

/// Solves alternatives by their bounds, the lowest first (of equals the first),
/// until the next bound is not below the cheapest: that is the optimum of all.
/// `solve` returns a cost that is at least the alternative's bound, or none
/// where nothing of it fits.
AlternativeSearch
searchAlternatives(llvm::ArrayRef<double> bounds,
                   llvm::function_ref<std::optional<double>(size_t)> solve);

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_ALTERNATIVES_H
