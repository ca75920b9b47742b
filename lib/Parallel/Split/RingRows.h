// Where the rows of a sequence are in one rank's program, whose causal
// attention is made by rings: followed from there to where they come from and
// go to.

#ifndef ACCEL_LIB_PARALLEL_SPLIT_RINGROWS_H
#define ACCEL_LIB_PARALLEL_SPLIT_RINGROWS_H

#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "llvm/ADT/MapVector.h"

namespace accel::parallel {

/// Keys and values of an attention, which ranks' parts are gathered for.
struct GatheredKeys {
  mlir::Operation *attention; ///< nn.attention or its gradient
  dist::AllGatherOp keys, values;
  /// Of a gradient, the scatters of the sums that are those of keys and values.
  llvm::SmallVector<dist::ReduceScatterOp, 2> scatters;

  /// One rank's.
  mlir::Value getKeys() const { return keys->getOperand(0); }
  mlir::Value getValues() const { return values->getOperand(0); }
  mlir::StringAttr getAxis() const {
    return dist::AllGatherOp(keys).getAxes().getNames().front();
  }
};

/// Ranks' rows in a dimension of a tensor that has those of all: `outer` times
/// those of each of `ranks` ranks, of which each has, for each of `between`, so
/// many rows, `inner` elements apart.
struct AllRows {
  unsigned dim;
  int64_t outer, ranks, between, rows, inner;
};

/// A counter of a rank's own rows: an `iota` from where they begin.
struct RowCounter {
  nn::AddOp add;
  nn::IotaOp iota;
  dist::AxisIndexOp index; ///< of the ranks, whose first axis is the rings'
};

/// What of an entry must change where ranks' rows are others.
struct RingRows {
  /// Inputs and outputs, by number, and the dimension that all rows are in.
  struct Outside {
    unsigned number, dim;
  };
  llvm::SmallVector<Outside> arguments, results;
  /// Gathers of rows, by what reads all; and what cuts a rank's out of all.
  llvm::MapVector<mlir::Operation *, AllRows> gathers, slices;
  llvm::SmallVector<RowCounter> counters;
  /// Rings whose keys are among the rows.
  llvm::SmallVector<const GatheredKeys *> rings;
};

/// Follows the rows of causal rings along `axis`. None, with a warning, if
/// something is reached that knows their places, or that is not understood.
std::optional<RingRows> followRows(mlir::func::FuncOp entry,
                                   mlir::StringAttr axis,
                                   llvm::ArrayRef<GatheredKeys> rings);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_SPLIT_RINGROWS_H
