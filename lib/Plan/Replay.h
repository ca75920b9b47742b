// Runs a program's entries in the mind: which command comes after which, and
// which bytes each one finds. The verifier's half of the plan; it shares
// nothing with the allocator, whose work it checks.

#ifndef ACCEL_LIB_PLAN_REPLAY_H
#define ACCEL_LIB_PLAN_REPLAY_H

#include "dialects/Plan/Plan.h"
#include "llvm/ADT/MapVector.h"
#include <map>

namespace accel::plan {

/// A command of one run.
struct Step {
  mutable CommandOpInterface command; // op handles are pointers
  RunOp run;
  /// Streams' clocks: how many steps of each stream happen before this one.
  llvm::StringMap<int64_t> before;
  int64_t position = 0; ///< among the steps of its stream
};

/// Bytes [begin, end) of an arena, reached through a buffer.
struct Bytes {
  Space space;
  int64_t begin, end;
  BufferOp buffer;

  bool overlaps(const Bytes &other) const {
    return space == other.space && begin < other.end && other.begin < end;
  }
};

/// Replays `load` once and every other entry twice, segment by segment. Each
/// function returns failure after one located error.
class Replay {
public:
  explicit Replay(ProgramOp program) : program(program) {}
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
  mlir::LogicalResult runSegment(SegmentOp segment);
  mlir::LogicalResult checkRaces(llvm::ArrayRef<Step> steps);
  mlir::LogicalResult checkCollectives(llvm::ArrayRef<Step> steps);
  mlir::LogicalResult execute(const Step &step);
  mlir::LogicalResult checkRead(const Step &step, ViewAttr view);
  Bytes getBytes(ViewAttr view, RunOp run);
  void write(const Bytes &bytes, Content content);

  ProgramOp program;
  std::map<Space, Contents> arenas;
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_REPLAY_H
