// Runs a program's entries in the mind: which command comes after which, and
// which bytes each one finds. The verifier's half of the plan; it shares
// nothing with the allocator, whose work it checks.

#ifndef ACCEL_LIB_PLAN_CHECK_REPLAY_H
#define ACCEL_LIB_PLAN_CHECK_REPLAY_H

#include "dialects/Plan/RunList.h"
#include "lib/Plan/BufferTable.h"
#include "llvm/ADT/MapVector.h"
#include <map>

namespace accel::plan {

/// A command of one run, in one turn.
struct Step {
  mutable CommandOpInterface command; // op handles are pointers
  RunTurn run;
  size_t number;        ///< of the run, a turn counting as one
  unsigned stream;      ///< its number
  int64_t position = 0; ///< among the steps of its stream
  int64_t enqueued = 0; ///< among all: devices are told of them in this order
  /// Streams' clocks: how many steps of each stream happen before this one.
  llvm::SmallVector<int64_t, 2> before;

  bool happensBefore(const Step &other) const {
    return position < other.before[stream];
  }
};

/// Bytes [begin, end) of an arena, reached through a buffer.
struct Bytes {
  Space space;
  int64_t begin, end;
  BufferOp buffer;
};

/// Replays `load` once and every other entry twice, of each loop the turns
/// that ProofTurns lists. Each function returns failure after one located
/// error.
class Replay {
public:
  Replay(ProgramOp program, const BufferTable &buffers)
      : program(program), buffers(buffers) {}
  mlir::LogicalResult run();

private:
  /// Who wrote a byte last: the step, or nobody (constants, poison).
  struct Content {
    BufferOp buffer;
    mlir::Operation *writer = nullptr;
    bool released = false;
  };
  using Contents = std::map<int64_t, std::pair<int64_t, Content>>;

  mlir::LogicalResult runEntry(EntryOp entry);
  /// The steps of an entry in an order in which they can happen, checked once
  /// for all that does not depend on what came before. Segments hold no stream
  /// up.
  mlir::FailureOr<std::vector<Step>> order(EntryOp entry);
  mlir::LogicalResult checkRaces(llvm::ArrayRef<Step> steps);
  mlir::LogicalResult checkCollectives(llvm::ArrayRef<Step> steps);
  mlir::LogicalResult execute(const Step &step);
  mlir::LogicalResult checkRead(const Step &step, ViewAttr view);
  Bytes getBytes(ViewAttr view, const RunTurn &run);
  void write(const Bytes &bytes, Content content);

  ProgramOp program;
  const BufferTable &buffers;
  std::map<Space, Contents> arenas;
  llvm::DenseMap<mlir::Operation *, std::vector<Step>> orders; ///< of entries
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_CHECK_REPLAY_H
