// What the ranks of each stage will have in memory, found by a trial: a copy of
// the decided program is split and planned as the program itself will be.

#ifndef ACCEL_LIB_SEARCH_TRIAL_H
#define ACCEL_LIB_SEARCH_TRIAL_H

#include "Passes.h"
#include "lib/Cost/Prediction.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/BitVector.h"
#include <map>

namespace accel::search {

/// The keys of `accel.decisions` that say how many bytes a rank may have: of
/// memory, but for the host's where that has a budget of its own; of the host's
/// memory; of a file.
inline constexpr llvm::StringLiteral kMemoryBudgetKey = "memory_budget",
                                     kHostBudgetKey = "host_budget",
                                     kNvmeBudgetKey = "nvme_budget";

/// The key of the budget that the arenas of a space count for. `decisions` may
/// be null.
llvm::StringRef getBudgetKey(llvm::StringRef space,
                             mlir::DictionaryAttr decisions);

/// What a trial shows. Layers and policies are those of
/// `parallel::RecomputeChoices`.
struct Trial {
  struct Stage {
    int64_t stage = 0;
    std::vector<cost::PredictedArena> arenas;
    /// By layer, of those that were not left out: what a rank has of it in its
    /// device arena at the moment when most of that is alive.
    std::map<unsigned, int64_t> bytesOfLayer;
    /// What the bytes are for, the most first; of a whole program.
    llvm::SmallVector<std::pair<std::string, int64_t>> roles;

    /// By how much a step takes longer for copies between arenas
    /// (lib/Plan/CommandSeconds.h); of a whole program.
    double secondsOfCopies = 0;

    /// Of all arenas of a rank that count for the memory budget.
    int64_t getBytes() const { return bytes; }
    int64_t bytes = 0;
  };
  std::vector<Stage> stages;
  bool isShortened = false; ///< layers were left out
  /// By layer: the work (lib/Cost/Work.h) that a micro-batch does again.
  std::map<unsigned, double> workOfLayer;

  const Stage &getLargest() const;
  int64_t getPeak() const { return getLargest().getBytes(); }
};

/// What a trial is made of: with all layers, or without most of those that are
/// alike (RepeatedBlocks.h), which takes less time and is a prediction.
enum class Extent { Whole, Shortened };

/// Tries a module in phase `dist` whose decisions are made, with a policy for
/// each layer; none: with the marks that it has. Of the stages that are named,
/// in their order; of all, if none is. The module is not changed, and several
/// threads may try it at once. Fails without a word where the program cannot be
/// planned: whoever plans it says why.
mlir::FailureOr<Trial> tryPlan(mlir::ModuleOp module, const Trier &trier,
                               llvm::ArrayRef<unsigned> policyOfLayer,
                               Extent extent,
                               llvm::ArrayRef<int64_t> stages = {});

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_TRIAL_H
