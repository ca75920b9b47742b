// What of a weight is read in fewer bits than it is kept in.

#ifndef ACCEL_LIB_PARALLEL_STATES_NARROWEDWEIGHTS_H
#define ACCEL_LIB_PARALLEL_STATES_NARROWEDWEIGHTS_H

#include "GradientOps.h"
#include "llvm/ADT/SetVector.h"

namespace accel::parallel {

/// Whether an op rounds to a type of fewer bits.
bool isNarrowing(mlir::Operation *op);

/// Whether a value needs nothing of a weight where it has the weight's shape:
/// numbers that are repeated (a scale, or one for each row), or a constant of
/// equal elements. A rank that has a piece of the weight makes the same piece
/// of these.
bool isRepeated(mlir::Value value);

/// The ops that round a weight, each of what the one before makes of it element
/// by element, scaling and clamping it, the last of which rounds to fewer bits.
/// None where `rounded` is not made so of an argument of the function.
llvm::SmallVector<mlir::Operation *> findRounding(mlir::Value rounded);

/// Whether a reader of a weight is the first of such ops, or one of them.
bool leadsToNarrowing(mlir::OpOperand &use);

/// Reads of a weight that need no rank to have it whole.
struct NarrowedReads {
  llvm::SmallVector<mlir::OpOperand *> reads;
  /// What is made of these element by element, in fewer bits.
  llvm::SetVector<mlir::Operation *> rounded;
  /// What they are reduced to: largest magnitudes.
  llvm::SetVector<mlir::Operation *> reduced;
};
/// Of the reads of `weight` by forward and backward those that end in one of
/// the two. None if it is scaled before it is rounded nowhere: what is only
/// rounded is moved with its gather (`dist-place-gathers`).
NarrowedReads findNarrowedReads(mlir::Value weight, const GradientOps &ops);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_STATES_NARROWEDWEIGHTS_H
