// Executes the plans of all ranks: streams in an order that a policy chooses
// among those which waits, segments, collectives and messages allow.

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
    plan::RunOp run;
    llvm::SmallVector<mlir::Operation *> messages; ///< not yet exchanged
  };
  using Streams = llvm::MapVector<mlir::StringAttr, std::deque<Item>>;
  struct Rank {
    plan::ProgramOp program;
    RankMemory memory;
    std::deque<plan::SegmentOp> segments; ///< not yet begun
    Streams streams;                      ///< of the segment being executed
    llvm::DenseSet<std::pair<mlir::Operation *, mlir::Attribute>> recorded;
  };
  /// What became of an attempt to execute the head of a stream.
  enum class Outcome { Done, Blocked, Failed };

  void beginSegment(Rank &rank);
  Outcome attempt(int64_t rank, std::deque<Item> &stream);
  Outcome attemptCollective(int64_t rank, Item &head);
  Outcome attemptMessages(int64_t rank, Item &head);
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
