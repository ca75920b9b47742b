// Visits alternatives in the order of their bounds.

#include "Alternatives.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVector.h"

using namespace accel::search;

AlternativeSearch accel::search::searchAlternatives(
    llvm::ArrayRef<double> bounds,
    llvm::function_ref<std::optional<double>(size_t)> solve) {
  auto order = llvm::to_vector(llvm::seq<size_t>(0, bounds.size()));
  llvm::stable_sort(order, [&](size_t one, size_t other) {
    return bounds[one] < bounds[other];
  });
  AlternativeSearch search;
  search.costs.resize(bounds.size());
  search.isSolved.resize(bounds.size());
  for (size_t number : order) {
    if (search.best && bounds[number] >= *search.costs[*search.best])
      break;
    search.isSolved[number] = true;
    auto cost = search.costs[number] = solve(number);
    if (cost && (!search.best || *cost < *search.costs[*search.best]))
      search.best = number;
  }
  return search;
}
