// An op of one rank's program as one rank runs it: what it says of all ranks at
// once (`row_steps` of attention) is put in numbers.

#ifndef ACCEL_LIB_EVALUATE_RANKOP_H
#define ACCEL_LIB_EVALUATE_RANKOP_H

#include "lib/Evaluate/Placement.h"

namespace accel::evaluate {

/// The op itself where it is the same on all ranks, else a copy.
class RankOp {
public:
  /// An error at the op where it names an axis that the mesh lacks.
  static mlir::FailureOr<RankOp> get(mlir::Operation *op, MeshPoint point);
  RankOp(RankOp &&other) : op(other.op), isCopy(other.isCopy) {
    other.isCopy = false;
  }
  ~RankOp() {
    if (isCopy)
      op->destroy();
  }
  mlir::Operation *get() const { return op; }

private:
  RankOp(mlir::Operation *op, bool isCopy) : op(op), isCopy(isCopy) {}

  mlir::Operation *op;
  bool isCopy;
};

} // namespace accel::evaluate

#endif // ACCEL_LIB_EVALUATE_RANKOP_H
