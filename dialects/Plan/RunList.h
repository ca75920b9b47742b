// The run list of an entry, turn by turn: loops are written once and read here
// as often as it takes.

#ifndef ACCEL_DIALECTS_PLAN_RUNLIST_H
#define ACCEL_DIALECTS_PLAN_RUNLIST_H

#include "dialects/Plan/Plan.h"

namespace accel::plan {

/// How many turns of a loop are looked at where what follows from them is
/// proved for all: two for each copy that a buffer has at most.
///
/// Where buffers have one copy, a turn does the same commands at the same
/// addresses as the one before (a view that depends on the micro-batch counts
/// as all of its buffer). So what the bytes hold after a turn depends on its
/// own writes alone where it writes, and on what came before the loop where it
/// does not: the second turn leaves what the first one left, and every later
/// one finds what the second one found. Events are those of a run, so that
/// streams are the only order between turns. If a command of turn i and one of
/// turn j > i race, the first one's own execution in turn j - 1 comes after it
/// on its stream and races as well; hence a race between turns shows between
/// the first two, one with what precedes the loop in the first, and one with
/// what follows it in the last, for which the second stands.
///
/// Where they have up to n copies, addresses come back after at most n turns of
/// each buffer, and a copy's bytes are no other buffer's while the loop runs: a
/// command of turn i + n touches what it touched in turn i, and the same is
/// said of n turns at a time.
///
/// Whoever gives views exact bytes by micro-batch has more to show: what is
/// disjoint in turns 0 and 1 is disjoint in all only because an address is
/// linear in the turn, and if its stride is no smaller than what is touched.
int64_t countProofTurns(ProgramOp program);

/// A run in one turn of the loop around it; turn 0 where there is none.
struct RunTurn {
  mutable RunOp run; // op handles are pointers
  int64_t turn = 0;

  int64_t getMicroBatch() const {
    return static_cast<int64_t>(run.getOffset()) + turn;
  }
};

/// The runs of an entry in their order, of each loop its first `most` turns.
llvm::SmallVector<RunTurn> listRuns(EntryOp entry, int64_t most = INT64_MAX);

} // namespace accel::plan

#endif // ACCEL_DIALECTS_PLAN_RUNLIST_H
