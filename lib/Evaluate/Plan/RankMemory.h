// The bytes of one virtual rank: its arenas, at their planned sizes, and the
// buffers in them.

#ifndef ACCEL_LIB_EVALUATE_PLAN_RANKMEMORY_H
#define ACCEL_LIB_EVALUATE_PLAN_RANKMEMORY_H

#include "dialects/Plan/RunList.h"
#include "lib/Evaluate/Placement.h"
#include "llvm/ADT/StringMap.h"

namespace accel::evaluate {

class RankMemory {
public:
  /// Arenas full of poison, and the constants' values in their buffers. A
  /// buffer that has no offset yet gets bytes of its own. Fails, with an error
  /// at the buffer, where one leaves its arena.
  static mlir::FailureOr<RankMemory> create(plan::ProgramOp program,
                                            MeshPoint point);

  /// The elements of a view in a run. Fails, with an error at `at`, where the
  /// view leaves its buffer at this rank, micro-batch and slot.
  mlir::FailureOr<Tensor> read(mlir::Operation *at, plan::ViewAttr view,
                               const plan::RunTurn &run);

  /// Writes elements, rounded to the view's type. The tensor may have another
  /// shape of as many elements. Fails as `read` does.
  mlir::LogicalResult write(mlir::Operation *at, plan::ViewAttr view,
                            const plan::RunTurn &run, const Tensor &tensor);

  /// Overwrites the view's bytes with 0xFF: NaN in every float type.
  mlir::LogicalResult poison(mlir::Operation *at, plan::ViewAttr view,
                             const plan::RunTurn &run);

  /// Whether two views share bytes, gaps between elements counted as theirs.
  /// Requires that both can be read.
  bool overlap(plan::ViewAttr one, plan::ViewAttr other,
               const plan::RunTurn &run);

  MeshPoint pointOf(const plan::RunTurn &run) const;

private:
  struct Buffer {
    plan::Space space;
    int64_t base, bytes, slots, slotStride;
  };

  /// The first byte of a view.
  mlir::FailureOr<char *> resolve(mlir::Operation *at, plan::ViewAttr view,
                                  const plan::RunTurn &run);
  mlir::LogicalResult place(plan::ProgramOp program, plan::BufferOp buffer);

  MeshPoint point;
  std::map<plan::Space, std::vector<char>> arenas;
  llvm::StringMap<Buffer> buffers;
};

} // namespace accel::evaluate

#endif // ACCEL_LIB_EVALUATE_PLAN_RANKMEMORY_H
