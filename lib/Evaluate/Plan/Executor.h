// Executes the plans of all ranks: streams in an order that a policy chooses
// among those which waits, collectives and messages allow.

#ifndef ACCEL_LIB_EVALUATE_PLAN_EXECUTOR_H
#define ACCEL_LIB_EVALUATE_PLAN_EXECUTOR_H

#include "lib/Evaluate/Plan/Commands.h"

#include <deque>

namespace accel::evaluate {

/// In which order runnable streams are chosen. The first two let one stream run
/// as far ahead of the others as it can, which is where a missing wait shows.
enum class Policy { FirstStreamAhead, LastStreamAhead, Random };

class PlanExecutor {
public:
  PlanExecutor(PlanWorld &world, dist::MeshOp mesh, Policy policy,
               uint64_t seed)
      : world(world), mesh(mesh), policy(policy), random(seed) {}

  /// Finds each rank's program and makes its memory.
  mlir::LogicalResult load();

  /// Executes an entry on all ranks. A rank whose program lacks it does
  /// nothing.
  mlir::LogicalResult execute(llvm::StringRef entry);

  /// The entries of the programs: `load` first, the others as written.
  llvm::SmallVector<std::string> getEntries();

  /// Gives the world what the states are now that any entry but `load` writes.
  mlir::LogicalResult addStates();

private:
  /// One execution of a command, or of a group of messages.
  struct Item {
    mlir::Operation *op;
    plan::RunTurn run;
    size_t number; ///< of the run, a turn counting as one
    llvm::SmallVector<mlir::Operation *> messages; ///< not yet exchanged
  };
  /// The commands of a stream that are left: of the run at hand, and of the
  /// runs from number `next` on.
  struct Stream {
    std::deque<Item> items;
    size_t next = 0;
  };
  struct Rank {
    plan::ProgramOp program;
    RankMemory memory;
    llvm::SmallVector<plan::RunTurn> runs; ///< of the entry being executed
    std::optional<plan::Recorders> recorders;
    llvm::MapVector<mlir::StringAttr, Stream> streams;
    llvm::DenseSet<std::pair<size_t, mlir::Attribute>> recorded; ///< by run
  };
  /// What became of an attempt to execute the head of a stream.
  enum class Outcome { Done, Blocked, Failed };

  void begin(Rank &rank, plan::EntryOp entry);
  void goOn(Rank &rank, mlir::StringAttr name, Stream &stream);
  Outcome attempt(int64_t rank, std::deque<Item> &stream);
  Outcome attemptCollective(int64_t rank, Item &head);
  Outcome attemptMessages(int64_t rank, Item &head);
  std::optional<int64_t> countRanks(llvm::StringRef axis);
  Outcome finish(int64_t rank, std::deque<Item> &stream);
  /// The head of some stream of `rank` that satisfies `matches`, with its
  /// stream; null if there is none.
  std::deque<Item> *findHead(int64_t rank,
                             llvm::function_ref<bool(Item &)> matches);
  mlir::LogicalResult reportDeadlock();
  uint64_t nextRandom();

  PlanWorld &world;
  dist::MeshOp mesh;
  Policy policy;
  uint64_t random;
  std::vector<Rank> ranks;
};

} // namespace accel::evaluate

#endif // ACCEL_LIB_EVALUATE_PLAN_EXECUTOR_H
