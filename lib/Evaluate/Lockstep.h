// Executes functions of nn and dist ops on virtual ranks, op by op over all
// ranks: each op runs on every rank before the next one starts.

#ifndef ACCEL_LIB_EVALUATE_LOCKSTEP_H
#define ACCEL_LIB_EVALUATE_LOCKSTEP_H

#include "dialects/Interfaces/Evaluate.h"
#include "lib/Evaluate/Collectives.h"
#include "lib/Evaluate/Placement.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace accel::evaluate {

class Lockstep {
public:
  /// One rank per rank of `mesh`; one rank if it is null. In one process, a
  /// program before localisation (whole tensors) is a program of one rank.
  Lockstep(dist::MeshOp mesh, bool wholeTensors, EvaluationMode mode)
      : mesh(mesh), ranks(mesh && !wholeTensors ? mesh.getRankCount() : 1),
        mode(mode) {}

  int64_t getRankCount() const { return ranks; }
  /// The coordinate along `mb` that functions are called at from now on.
  void setMicroBatch(int64_t number) { microBatch = number; }

  /// Calls a function; arguments and results hold one tensor per rank.
  mlir::LogicalResult call(mlir::func::FuncOp function,
                           llvm::ArrayRef<GroupTensors> arguments,
                           llvm::SmallVectorImpl<GroupTensors> &results);

private:
  using Values = llvm::DenseMap<mlir::Value, GroupTensors>;

  mlir::LogicalResult execute(mlir::Operation *op,
                              llvm::ArrayRef<GroupTensors> operands,
                              llvm::SmallVectorImpl<GroupTensors> &results);
  mlir::LogicalResult executeCollective(dist::CollectiveOpInterface op,
                                        llvm::ArrayRef<GroupTensors> operands,
                                        GroupTensors &result);

  dist::MeshOp mesh;
  int64_t ranks;
  int64_t microBatch = 0;
  EvaluationMode mode;
};

} // namespace accel::evaluate

#endif // ACCEL_LIB_EVALUATE_LOCKSTEP_H
