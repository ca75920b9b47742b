// When the buffers of a program are accessed: by which commands, and in which
// of their executions.

#ifndef ACCEL_LIB_PLAN_MEMORY_BUFFERACCESSES_H
#define ACCEL_LIB_PLAN_MEMORY_BUFFERACCESSES_H

#include "lib/Plan/Order/CommandOrder.h"
#include <map>

namespace accel::plan {

/// Of one program. Where buffers are merged, so are their accesses.
class BufferAccesses {
public:
  explicit BufferAccesses(ProgramOp program);

  /// Commands that access a buffer.
  llvm::SmallVector<CommandOpInterface> &getUsers(mlir::StringAttr buffer) {
    return users[buffer];
  }
  /// Takes the order that executions have; it must outlive this.
  void follow(const CommandOrder &order);

  /// Whether nothing accesses the buffer after the command has, in any run of
  /// it: every micro-batch begins by writing it, so that each looks at its own.
  bool isLastUse(CommandOpInterface command, BufferOp buffer);
  /// Whether one buffer with the copies of the one that has more can stand for
  /// two: in each copy a micro-batch has surely ended, with all that it does in
  /// either, when another begins. Each of them alone has as many copies as it
  /// needs, both together may need more.
  bool canShareBytes(BufferOp from, BufferOp to);
  /// What has accessed `gone` has accessed `kept`.
  void merge(mlir::StringAttr gone, mlir::StringAttr kept);

private:
  bool goesUnseen(unsigned entry, int64_t microBatch, mlir::StringAttr buffer);
  bool goAlike(unsigned entry, llvm::ArrayRef<mlir::StringAttr> bodies);

  llvm::SmallVector<EntryOp> entries; ///< by their numbers
  ProofTurns turns;                   ///< that have executions
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<CommandOpInterface>> users;
  /// In order.
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<const Execution *>>
      accesses;
  /// Whether all micro-batches of an entry go through these bodies alike.
  std::map<std::pair<unsigned, std::vector<const void *>>, bool> alike;
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_MEMORY_BUFFERACCESSES_H
