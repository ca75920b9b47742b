// The run list of an entry, turn by turn: loops are written once and read here
// as often as it takes.

#ifndef ACCEL_DIALECTS_PLAN_RUNLIST_H
#define ACCEL_DIALECTS_PLAN_RUNLIST_H

#include "dialects/Plan/Plan.h"

namespace accel::plan {

/// A run in one turn of the loop around it; turn 0 where there is none.
struct RunTurn {
  mutable RunOp run; // op handles are pointers
  int64_t turn = 0;
  /// Whether all of its commands are looked at, not records and waits alone.
  bool isWhole = true;

  int64_t getMicroBatch() const {
    return static_cast<int64_t>(run.getOffset()) + turn;
  }
  /// Whether a command of its body is looked at.
  bool lists(CommandOpInterface command) const {
    return isWhole || llvm::isa<RecordOp, WaitOp>(command.getOperation());
  }
};

/// The runs of an entry in their order, of each loop its first `most` turns.
llvm::SmallVector<RunTurn> listRuns(EntryOp entry, int64_t most = INT64_MAX);

/// Which turns of a loop are looked at where what follows from them is proved
/// for all, in a program whose buffers have up to n copies: whole the first
/// 2 n and the last n, and what orders them in n turns before the last.
///
/// Where buffers have one copy, a turn does the same commands at the same
/// addresses as the one before (a view that depends on the micro-batch counts
/// as all of its buffer). So what the bytes hold after a turn depends on its
/// own writes alone where it writes, and on what came before the loop where it
/// does not: the second turn leaves what the first one left, and every later
/// one finds what the second one found. A wait stands behind the run
/// that records, so that nothing of a later turn comes before anything of an
/// earlier one. If a command of turn i and one of turn j > i race, the first
/// one's own execution in turn j - 1 comes after it on its stream and races as
/// well; hence a race between turns shows between the first two, one with what
/// precedes the loop in the first, and one with what follows it in the last.
///
/// Where they have up to n copies, addresses come back after at most n turns of
/// each buffer, and a copy's bytes are no other buffer's while the loop runs: a
/// command of turn i + n touches what it touched in turn i, and the same is
/// said of n turns at a time: a race between turns shows in the first 2 n, one
/// with what follows in the last n.
///
/// Of the turns between, a command's last whole turn stands for what it left.
/// It came earlier on the same stream, so whatever surely comes after the real
/// one comes after it as well, if what makes sure of that is looked at: waits
/// and records of the n turns before, since nothing has touched the bytes for
/// more turns than there are copies. Without these turns what is ordered by a
/// wait in a turn left out would look like a race.
///
/// Whoever gives views exact bytes by micro-batch has more to show: what is
/// disjoint in turns 0 and 1 is disjoint in all only because an address is
/// linear in the turn, and if its stride is no smaller than what is touched.
class ProofTurns {
public:
  explicit ProofTurns(ProgramOp program);

  bool isWhole(int64_t turn, int64_t trips) const {
    return turn < 2 * copies || turn >= trips - copies;
  }
  bool isListed(int64_t turn, int64_t trips) const {
    return isWhole(turn, trips) || turn >= trips - 2 * copies;
  }
  /// The runs of an entry in these turns.
  llvm::SmallVector<RunTurn> listRuns(EntryOp entry) const;

private:
  int64_t copies = 1; ///< n
};

/// Whose events runs wait for.
class Recorders {
public:
  /// The runs as listRuns gives them, all turns or the first ones.
  explicit Recorders(llvm::ArrayRef<RunTurn> runs);

  /// The number of the run that records what a wait in run `number` is for:
  /// that run itself, or one before it; of a micro-batch whose turn is not
  /// listed the last one that is, which comes before the one that is meant.
  /// None if there is none.
  std::optional<size_t> find(WaitOp wait, size_t number) const;

private:
  struct Recorder {
    int64_t microBatch;
    size_t number;
  };
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<Recorder>> ofBody;
  llvm::SmallVector<int64_t> microBatches; ///< of each run
};

} // namespace accel::plan

#endif // ACCEL_DIALECTS_PLAN_RUNLIST_H
