// Happens-before: which executions of commands of a program surely come before
// which others.

#ifndef ACCEL_LIB_PLAN_ORDER_COMMANDORDER_H
#define ACCEL_LIB_PLAN_ORDER_COMMANDORDER_H

#include "dialects/Plan/RunList.h"
#include "llvm/Support/Allocator.h"

namespace accel::plan {

/// One execution of a command: by one run of its body, in one turn.
struct Execution {
  CommandOpInterface command;
  RunTurn run;
  unsigned entry;   ///< position of the entry in the order of execution
  unsigned stream;  ///< number of the command's stream
  unsigned ordinal; ///< position on its stream, from 1
  /// Of each stream, how many executions surely come before this one.
  llvm::ArrayRef<unsigned> clock;
};

/// All executions of a program in an order in which they can happen, with
/// vector clocks (Fidge 1988, Mattern 1989), of loops those that
/// ProofTurns lists. Executions of one stream follow the run list; a wait
/// comes after the record of its event (RunList.h says which); segments hold no
/// stream up; an entry begins when all streams have ended the one before it:
/// `load` first, then the others in the order written.
class CommandOrder {
public:
  /// Fails, with an error at the op, if a wait can never end.
  static mlir::FailureOr<CommandOrder> compute(ProgramOp program);

  llvm::ArrayRef<Execution> getExecutions() const { return executions; }
  unsigned getNumStreams() const { return numStreams; }

  /// Whether `before` surely ends before `after` begins.
  static bool happensBefore(const Execution &before, const Execution &after) {
    return before.ordinal <= after.clock[before.stream];
  }

private:
  using Clock = llvm::SmallVector<unsigned, 4>;
  /// A command of a body, and the number of its stream.
  using Placed = std::pair<CommandOpInterface, unsigned>;

  mlir::LogicalResult addEntry(EntryOp entry, unsigned number);

  std::vector<Execution> executions;
  llvm::BumpPtrAllocator storage; ///< of their clocks
  unsigned numStreams = 0;
  llvm::DenseMap<mlir::StringAttr, std::vector<Placed>> bodies;
  /// Of each stream: executions so far, and what its last one knows.
  llvm::SmallVector<unsigned> lengths;
  std::vector<Clock> clocks;
};

/// The entries of a program in the order in which they are executed.
llvm::SmallVector<EntryOp> getEntriesInOrder(ProgramOp program);

/// All views that a command reads, then all that it writes.
llvm::SmallVector<ViewAttr> getViews(CommandOpInterface command);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_ORDER_COMMANDORDER_H
