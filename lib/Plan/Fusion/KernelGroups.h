// Kernel groups: which ops of a block are computed together in one row kernel.

#ifndef ACCEL_LIB_PLAN_FUSION_KERNELGROUPS_H
#define ACCEL_LIB_PLAN_FUSION_KERNELGROUPS_H

#include "GroupOrder.h"
#include "lib/Target/Target.h"
#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace accel::plan {

/// A set of ops that become one kernel.
struct KernelGroup {
  llvm::SetVector<mlir::Operation *> members; ///< latest first
  int64_t rows = 1;
};

/// Groups the ops of a block. Greedy, from consumers to producers: a producer
/// joins the first group that reads it and stays legal with it. Then other
/// groups of as many rows that read its results join. What is read by anything
/// else becomes another result of the group.
class KernelGroups {
public:
  KernelGroups(mlir::Block &block, const Target &target);

  /// The groups, each with the number of rows it is cut into.
  std::vector<KernelGroup> take();

  /// The members of `group` that something outside of it reads.
  llvm::SmallVector<mlir::Value> getOutputs(const KernelGroup &group) const;

  /// Whether kernels that read `op`'s result have a copy of `op` within them:
  /// it has no operands, is a view of its only one, or is remade.
  bool isCloned(mlir::Operation *op) const;

private:
  /// An op that belongs to a group of its own or of others.
  bool isAnchor(mlir::Operation *op) const;
  /// Something cheap of a single tensor in memory.
  bool isRemade(mlir::Operation *op) const;
  /// A permutation of a command's result that the command can write itself.
  bool isWrittenInPlace(mlir::Operation *op) const;
  /// Anchors and commands that read `value`, cloned ops between them or not.
  void collectReaders(mlir::Value value,
                      llvm::SetVector<mlir::Operation *> &readers) const;
  /// Chooses `group.rows`; fails if there is no legal number.
  bool chooseRows(KernelGroup &group) const;
  bool isLegal(const KernelGroup &group, mlir::ValueRange outputs,
               int64_t rows) const;
  /// Lets groups that read another's results join it.
  void mergeReaders(GroupOrder &order);

  /// Whether a product does the work of `op`.
  bool isEpilogue(mlir::Operation *op) const;

  const Target &target;
  FusionLimits limits;
  llvm::DenseMap<mlir::Operation *, llvm::SetVector<mlir::Operation *>> readers;
  std::vector<KernelGroup> groups;
  llvm::DenseMap<mlir::Operation *, unsigned> groupOf;
  llvm::DenseMap<mlir::Operation *, unsigned> numbers; ///< in program order
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_FUSION_KERNELGROUPS_H
