// Which task each op of a step belongs to.

#ifndef ACCEL_LIB_TASKS_TASKHOMES_H
#define ACCEL_LIB_TASKS_TASKHOMES_H

#include "dialects/Dist/Dist.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace accel::tasks {

/// The tasks of a step on one stage, in the order in which they run.
enum class Home { Count, Prepare, Forward, Backward, Update };
inline constexpr int kHomes = 5;

/// What the terms of micro-batches are combined to.
struct Reduction {
  mutable dist::AccumulateOp op; // op handles are pointers
  Home adds;                     ///< the task that adds a micro-batch's term
  Home reads;                    ///< the first task that reads the sum
};

/// The homes of the ops of an entry in one block, of local shapes. Ops that are
/// free (isFree) are computed wherever they are read, whatever their home.
class TaskHomes {
public:
  /// Emits a located error and fails where the step cannot be run in
  /// micro-batches.
  static mlir::FailureOr<TaskHomes> compute(mlir::func::FuncOp entry,
                                            dist::MeshOp mesh);

  /// The task that computes a value; of an argument or a free op, Update.
  Home getHome(mlir::Value value) const;

  /// Whether the task `count` needs the op. It may have a home as well.
  bool isCounted(mlir::Operation *op) const { return counted.contains(op); }

  /// Whether anything but `count` needs the op.
  bool isLive(mlir::Operation *op) const { return live.contains(op); }

  /// Whether a task that runs once computes the value itself, though the loop
  /// may as well: what is gathered anew wherever it is wanted, and what is made
  /// of that alone.
  bool isRepeated(mlir::Operation *op) const { return repeated.contains(op); }

  /// Whether `reader` computes the value itself rather than have it kept: what
  /// the forward widens, the backward widens again, and half as much is kept.
  /// Not so the update: a gradient is summed in the wide type.
  bool isWidenedAgain(mlir::Operation *op, Home reader) const;

  /// What is combined over micro-batches, by its op.
  const llvm::MapVector<mlir::Operation *, Reduction> &getReductions() const {
    return reductions;
  }

  /// Whether computing the op again costs less than keeping its result:
  /// constants, indices, and other ways to read the same bytes.
  static bool isFree(mlir::Operation *op);

private:
  TaskHomes(mlir::func::FuncOp entry, dist::MeshOp mesh)
      : entry(entry), mesh(mesh) {}
  mlir::LogicalResult refuse(mlir::Operation *op, const llvm::Twine &why) const;
  void findUpdate();
  mlir::LogicalResult findVarying();
  void placeRepeated();
  void findForward();
  void placeInvariants();
  mlir::LogicalResult placeReductions();
  void findLive();

  mlir::func::FuncOp entry;
  dist::MeshOp mesh;
  int64_t microBatches = 1;
  /// Values that differ between micro-batches.
  llvm::DenseSet<mlir::Value> varying;
  llvm::DenseSet<mlir::Operation *> counted, live;
  /// What depends on gathers that each micro-batch repeats, and on nothing else
  /// that differs.
  llvm::DenseSet<mlir::Operation *> repeated;
  llvm::DenseMap<mlir::Operation *, Home> homes;
  llvm::MapVector<mlir::Operation *, Reduction> reductions;
};

} // namespace accel::tasks

#endif // ACCEL_LIB_TASKS_TASKHOMES_H
