// Which buffers of a plan hold something at which moment.

#ifndef ACCEL_LIB_REPORT_LIVENESS_H
#define ACCEL_LIB_REPORT_LIVENESS_H

#include "dialects/Plan/Plan.h"
#include "llvm/ADT/MapVector.h"

namespace accel::report {

/// The lives of a program's buffers over one call of its main entry, in the
/// order of its commands (in which they may overlap in time on several
/// streams). What is read before it is written, or outlives the call, lives
/// throughout.
class Liveness {
public:
  static mlir::FailureOr<Liveness> compute(plan::ProgramOp program);

  /// What is alive in an arena at the moment when that is most.
  llvm::SmallVector<plan::BufferOp> getPeak(plan::Space space) const;
  /// The unit whose gathered weights a buffer holds; null if none.
  mlir::StringAttr getUnit(plan::BufferOp buffer) const {
    return units.lookup(buffer);
  }
  /// The most units whose gathered weights are alive at once.
  int64_t getUnitsInFlight() const;
  static int64_t getBytes(plan::BufferOp buffer);

private:
  struct Life {
    int64_t first, last;
  };
  /// Of buffers with bytes of their own; several lives where each micro-batch
  /// writes a buffer anew.
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<Life, 1>> lives;
  llvm::DenseMap<mlir::Operation *, mlir::StringAttr> units;
  int64_t moments = 0;
};

/// The ONNX nodes that a buffer belongs to, as messages name them.
std::string describeNode(mlir::Operation *op);

} // namespace accel::report

#endif // ACCEL_LIB_REPORT_LIVENESS_H
