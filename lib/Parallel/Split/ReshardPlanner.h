// The cheapest sequence of collectives between two shardings of a tensor.

#ifndef ACCEL_LIB_PARALLEL_SPLIT_RESHARDPLANNER_H
#define ACCEL_LIB_PARALLEL_SPLIT_RESHARDPLANNER_H

#include "dialects/Dist/Dist.h"
#include "lib/Cost/Exchange.h"
#include <map>

namespace accel::parallel {

/// One collective of a plan.
struct ReshardStep {
  cost::Exchange kind;
  dist::AxesAttr axes = {};
  /// The dimension gathered, sliced or scattered; of AllToAll the one split.
  int64_t dim = -1;
  /// AllToAll: the dimension that is joined.
  int64_t concatDim = -1;
  /// Permute: whose piece each rank of the group gets.
  llvm::SmallVector<int64_t> sources = {};
  /// The sharding after the step.
  dist::ShardingAttr sharding = {};
};

struct ReshardPlan {
  llvm::SmallVector<ReshardStep, 4> steps;
  double seconds = 0;
};

/// Dijkstra's algorithm over (axes of each dimension, partial axes). Edges are
/// single collectives at the price alpha + beta · bytes of the mesh's links.
/// Axes of size 1 are free. Plans are remembered.
class ReshardPlanner {
public:
  explicit ReshardPlanner(dist::MeshOp mesh) : mesh(mesh) {}

  /// The plan for a tensor of global `shape` and `elementBytes` per element.
  /// Requires that both shardings are valid for the shape on the mesh and that
  /// `to` is partial over axes of `from` only (as `dist.reshard` verifies).
  const ReshardPlan &plan(llvm::ArrayRef<int64_t> shape, int64_t elementBytes,
                          dist::ShardingAttr from, dist::ShardingAttr to);

  /// What a step costs a rank that holds `localBytes` before it.
  double getSeconds(cost::Exchange kind, dist::AxesAttr axes,
                    double localBytes);

private:
  dist::MeshOp mesh;
  using Key =
      std::tuple<std::vector<int64_t>, int64_t, const void *, const void *>;
  std::map<Key, ReshardPlan> plans;
};

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_SPLIT_RESHARDPLANNER_H
