// The parts of a model whose weights are gathered, and whose gradients are
// scattered, together.

#ifndef ACCEL_LIB_PARALLEL_STATES_GATHERUNITS_H
#define ACCEL_LIB_PARALLEL_STATES_GATHERUNITS_H

#include "mlir/IR/Operation.h"

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

/// The units of one step.
class GatherUnits {
public:
  /// Of the uses of weights in the forward, in program order: who reads it, and
  /// the number of the weight in `names`, the weights' own.
  using Use = std::pair<mlir::OpOperand *, unsigned>;
  GatherUnits(llvm::ArrayRef<Use> forward,
              llvm::ArrayRef<llvm::StringRef> names);

  /// Of each use in the forward.
  llvm::ArrayRef<unsigned> inForward() const { return forward; }
  /// Of each of a sequence of weights that the backward comes by: it goes
  /// through the units from the last to the first; a weight of several (a tied
  /// table) counts for the one that is nearest.
  llvm::SmallVector<unsigned>
  inBackward(llvm::ArrayRef<unsigned> weights) const;
  /// Where the backward begins.
  unsigned getLast() const { return units.size() - 1; }
  /// After the module that the weights' names share: "transformer.h.0".
  llvm::StringRef getName(unsigned unit) const { return units[unit]; }

private:
  llvm::SmallVector<unsigned> forward;
  llvm::SmallVector<llvm::SmallVector<unsigned, 2>> unitsOf; ///< each weight
  llvm::SmallVector<std::string> units;
};

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_STATES_GATHERUNITS_H
