// The parts of a model whose weights are gathered together.

#ifndef ACCEL_LIB_PARALLEL_GATHERUNITS_H
#define ACCEL_LIB_PARALLEL_GATHERUNITS_H

#include "mlir/Support/LLVM.h"

namespace accel::parallel {

/// A use of a weight in the forward: what it looks like, and what it costs.
struct WeightUse {
  /// Equal for uses that could stand for each other in isomorphic blocks.
  size_t signature;
  /// Which weight, and its size.
  unsigned weight;
  int64_t bytes;
};

/// Splits the uses of weights, in the order of the forward, into units: the
/// copies of a repeated block are a unit each, and so is what stands between
/// them. Where nothing is repeated, units are as large as the largest weight.
/// Returns each use's unit, ascending from 0.
///
/// At every place the repetition that covers most is taken, of those with the
/// shortest block.
llvm::SmallVector<unsigned> findGatherUnits(llvm::ArrayRef<WeightUse> uses);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_GATHERUNITS_H
