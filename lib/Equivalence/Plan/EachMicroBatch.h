// Tensors of all micro-batches in one buffer, one after another, which a
// command reads or writes at once: as the micro-batches have them.

#ifndef ACCEL_LIB_EQUIVALENCE_PLAN_EACHMICROBATCH_H
#define ACCEL_LIB_EQUIVALENCE_PLAN_EACHMICROBATCH_H

#include "LocalValues.h"
#include "Memory.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace accel::equivalence {

/// What of a view with `each_micro_batch` is of one micro-batch: the tensor
/// that is so many bytes behind that of the one before.
plan::ViewAttr getOwnOf(plan::ViewAttr each);

/// Buffers that `plan.write … each_micro_batch` reads. Runs on different
/// micro-batches write their own tensors there, and one turn of a loop stands
/// for all, so that no byte range says what such a buffer holds. So it is
/// written down which micro-batch's tensor a run has put where that micro-batch
/// has its place; whoever else writes a byte of the buffer ends that for all of
/// them, and in a loop for whatever its turns put there: another turn may come
/// between.
class EachMicroBatch {
public:
  explicit EachMicroBatch(plan::ProgramOp program);

  void beginEntry();
  /// What is written from here on is in a loop, or in none (null).
  void setLoop(plan::LoopOp loop) { current = loop; }

  /// Notes what a run writes, if the view is where its micro-batch has its
  /// place; else false.
  bool put(plan::ViewAttr view, MicroBatch microBatch, TermId term);
  /// Something else has written bytes, or released them.
  void overwrite(const Place &place);

  /// The tensors that a buffer holds, by micro-batch, each with how many
  /// micro-batches from its number on it stands for. Empty unless each of
  /// `count` has one.
  struct Piece {
    TermId term;
    int64_t turns;
  };
  using Pieces = std::map<MicroBatch, Piece>;
  Pieces find(plan::ViewAttr each, int64_t count) const;

private:
  struct Area {
    plan::Space space;
    int64_t begin, end;
    plan::ViewAttr own; ///< of a micro-batch; null: they cannot be told apart
    Pieces pieces;
    llvm::DenseSet<mlir::Operation *> spoiled; ///< loops
  };
  llvm::MapVector<mlir::StringAttr, Area> areas;
  plan::LoopOp current;
};

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PLAN_EACHMICROBATCH_H
