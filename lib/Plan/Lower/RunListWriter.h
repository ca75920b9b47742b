// Writes the run list of an entry.

#ifndef ACCEL_LIB_PLAN_LOWER_RUNLISTWRITER_H
#define ACCEL_LIB_PLAN_LOWER_RUNLISTWRITER_H

#include "dialects/Plan/Plan.h"
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
  BodyOp read, body, write; ///< null where there is nothing to do
  llvm::SmallVector<llvm::StringRef> inputs;
  /// Inputs that a task has read which gives it values of the same micro-batch:
  /// their buffers keep them as long.
  llvm::StringSet<> kept;
  unsigned runs = 0; ///< a loop's counts twice
};

/// Segments and loops, one run after the other: reading and writing files
/// cannot be captured in a graph, what stands between can.
class RunListWriter {
public:
  RunListWriter(EntryOp entry, Engine engine)
      : entry(entry), engine(engine), list(&entry.getBody()) {}

  /// Nothing for a null body.
  void run(BodyOp body, int64_t offset, bool capturable);

  /// A task's bodies; inputs are read where their buffers have those of another
  /// micro-batch.
  void run(TaskBodies &bodies, int64_t offset);

  /// What `runs` adds repeats.
  void loop(int64_t trips, llvm::function_ref<void()> runs);

private:
  EntryOp entry;
  Engine engine;
  mlir::Region *list; ///< the entry's, or that of the loop at hand
  SegmentOp segment;  ///< that is still open
  /// The micro-batch that an input's buffer has; in a loop, beyond the turn.
  llvm::StringMap<int64_t> current;
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_RUNLISTWRITER_H
