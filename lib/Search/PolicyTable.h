// What each policy of recomputation takes and saves, layer by layer and stage
// by stage, found by trials.

#ifndef ACCEL_LIB_SEARCH_POLICYTABLE_H
#define ACCEL_LIB_SEARCH_POLICYTABLE_H

#include "InFlight.h"
#include "PolicyKnapsack.h"
#include "Trial.h"
#include "lib/Parallel/RecomputeChoices.h"

namespace accel::search {

/// The tables of all stages, and which layers their classes are.
class PolicyTable {
public:
  /// Tries each part of layers alone, and whole layers; of parts together the
  /// savings add up. The layout is the module's. Where all fits `budget` by far
  /// without any, `none` is the only choice. Fails without a word where the
  /// program cannot be planned.
  static mlir::FailureOr<PolicyTable>
  measure(mlir::ModuleOp module, const parallel::RecomputeChoices &choices,
          const Layout &layout, const Trier &trier, int64_t budget = 0);

  /// Whether what a trial predicts is so near to the budget that the whole
  /// program may be on its other side.
  static bool isNear(int64_t bytes, int64_t budget);

  llvm::ArrayRef<StageTable> getStages() const { return stages; }
  /// Whether trials leave layers or stages out: what the table says of those is
  /// a prediction.
  bool isPrediction() const { return predicted; }
  /// What a trial need be made of so that it tells of each layer.
  Extent getExtent() const { return extent; }
  /// The work (lib/Cost/Work.h) of a choice, each micro-batch.
  double getWork(const PolicyCounts &counts) const {
    return double(counts.work) * unit;
  }
  /// What a stage has at its peak where nothing is computed again.
  int64_t getBytesOfNone(size_t stage) const { return bytesOfNone[stage]; }

  /// The work that a layer of a kind (`RecomputeChoices::Layer`) does again,
  /// each micro-batch.
  double getWork(unsigned kind, unsigned policy) const;
  /// "7 layers full, 5 layers none": of a stage, or of all.
  std::string describe(const parallel::RecomputeChoices &choices,
                       llvm::ArrayRef<unsigned> policyOfLayer,
                       std::optional<size_t> stage = std::nullopt) const;

  /// Gives the layers of a stage their policies. The first layers of a class
  /// get those that keep least: they would keep it longest.
  void assign(size_t stage, const PolicyCounts &counts,
              llvm::MutableArrayRef<unsigned> policyOfLayer) const;

private:
  using Trials = std::vector<std::optional<Trial>>; ///< by policy

  void addStage(const parallel::RecomputeChoices &choices, const Trials &trials,
                size_t stage, llvm::ArrayRef<unsigned> layers);

  std::vector<StageTable> stages;
  std::vector<int64_t> bytesOfNone;
  std::map<std::pair<unsigned, unsigned>, double> workOf; ///< kind and policy
  double unit = 1; ///< of the works in the tables
  bool predicted = false;
  Extent extent = Extent::Shortened;
  std::vector<std::vector<std::vector<unsigned>>> layersOfClass; ///< by stage
};

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_POLICYTABLE_H
