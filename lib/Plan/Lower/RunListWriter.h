// Writes the run list of an entry.

#ifndef ACCEL_LIB_PLAN_LOWER_RUNLISTWRITER_H
#define ACCEL_LIB_PLAN_LOWER_RUNLISTWRITER_H

#include "lib/Target/Target.h"
#include "llvm/ADT/StringSet.h"

namespace accel::plan {

/// An op whose body has its block.
template <typename Op, typename... Args>
Op createContainer(mlir::OpBuilder &builder, mlir::Location loc,
                   Args &&...args) {
  auto op = Op::create(builder, loc, std::forward<Args>(args)...);
  op.getBody().emplaceBlock();
  return op;
}

/// The blocks of commands of one task.
struct TaskBodies {
  /// Null where there is nothing to do. `readOnce` reads what all micro-batches
  /// share, where no task before reads it; `read` what each has of its own.
  BodyOp readOnce, read, body, write;
  llvm::SmallVector<llvm::StringRef> inputs; ///< that `read` reads
  /// Inputs that a task has read which gives it values of the same micro-batch:
  /// their buffers keep them as long.
  llvm::StringSet<> kept;
  unsigned runs = 0; ///< a loop's counts twice
  /// Whether buffers have another micro-batch's inputs before one of its runs.
  bool reads = false;
};

/// Segments and loops, one run after the other: what the target cannot capture
/// stands apart, what stands between can be captured.
class RunListWriter {
public:
  RunListWriter(EntryOp entry, const Target &target)
      : entry(entry), target(target), list(&entry.getBody()) {}

  /// Nothing for a null body. Requires that the body has its commands.
  void run(BodyOp body, int64_t offset);

  /// A task's bodies. It reads its inputs in all of its runs or in none: what
  /// is split over micro-batches is read once of each.
  void run(TaskBodies &bodies, int64_t offset);

  /// What all micro-batches share stands in its buffer until the entry ends, so
  /// that it is read before the first task that wants it, and before loops.
  void readOnce(TaskBodies &bodies);

  /// What `runs` adds repeats.
  void loop(int64_t trips, llvm::function_ref<void()> runs);

private:
  bool isCapturable(BodyOp body);

  EntryOp entry;
  const Target &target;
  llvm::DenseMap<mlir::Operation *, bool> capturable; ///< of bodies
  mlir::Region *list; ///< the entry's, or that of the loop at hand
  SegmentOp segment;  ///< that is still open
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_RUNLISTWRITER_H
