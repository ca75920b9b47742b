// Which stages of a pipeline a trial need plan, since the others are like them
// but for how many micro-batches they have in flight.

#ifndef ACCEL_LIB_SEARCH_STAGESAMPLE_H
#define ACCEL_LIB_SEARCH_STAGESAMPLE_H

#include "Trial.h"
#include "lib/Parallel/RecomputeChoices.h"

namespace accel::search {

/// Stages between the first and the last that have the same layers, a chunk
/// each, are alike: of them the one that has fewest micro-batches in flight is
/// tried, and the one that has most. What a rank has grows as those do.
class StageSample {
public:
  /// `inFlight` is by stage, empty where it is not known: then all are tried.
  StageSample(llvm::ArrayRef<parallel::RecomputeChoices::Layer> layers,
              llvm::ArrayRef<int64_t> stageOfChunk,
              llvm::ArrayRef<int64_t> inFlight);

  /// The stages to try (`tryPlan`), in their order; empty if that is all.
  llvm::ArrayRef<int64_t> getTried() const { return tried; }

  /// Adds the stages that were not tried to a trial of those, all in their
  /// order. Of what it adds there are no roles.
  void complete(Trial &trial) const;

private:
  /// A stage between two that were tried: as much of the way from the one to
  /// the other.
  struct Between {
    int64_t stage, least, most;
    double way;
  };

  std::vector<int64_t> tried;
  std::vector<Between> others;
  std::vector<std::vector<unsigned>> layersOfStage;
};

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_STAGESAMPLE_H
