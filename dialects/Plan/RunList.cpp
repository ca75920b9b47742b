// Lists the runs of an entry, turn by turn.

#include "dialects/Plan/RunList.h"

using namespace mlir;
using namespace accel::plan;

/// The runs of the turns for which `list(turn, trips)`, whole if
/// `isWhole(turn, trips)`.
template <class List, class Whole>
static SmallVector<RunTurn> listTurns(EntryOp entry, List &&list,
                                      Whole &&isWhole) {
  SmallVector<RunTurn> runs;
  auto add = [&](SegmentOp segment, int64_t turn, bool whole) {
    for (auto run : segment.getOps<RunOp>())
      runs.push_back({run, turn, whole});
  };
  for (Operation &op : entry.getBody().front()) {
    if (auto segment = dyn_cast<SegmentOp>(op))
      add(segment, 0, true);
    auto loop = dyn_cast<LoopOp>(op);
    int64_t trips = loop ? int64_t(loop.getTrips()) : 0;
    for (int64_t turn = 0; turn < trips; ++turn)
      if (list(turn, trips))
        for (auto segment : loop.getOps<SegmentOp>())
          add(segment, turn, isWhole(turn, trips));
  }
  return runs;
}

SmallVector<RunTurn> accel::plan::listRuns(EntryOp entry, int64_t most) {
  return listTurns(
      entry, [&](int64_t turn, int64_t) { return turn < most; },
      [](int64_t, int64_t) { return true; });
}

ProofTurns::ProofTurns(ProgramOp program) {
  for (auto buffer : program.getOps<BufferOp>())
    copies = std::max<int64_t>(copies, buffer.getSlots());
}

SmallVector<RunTurn> ProofTurns::listRuns(EntryOp entry) const {
  return listTurns(
      entry, [&](int64_t turn, int64_t trips) { return isListed(turn, trips); },
      [&](int64_t turn, int64_t trips) { return isWhole(turn, trips); });
}

Recorders::Recorders(ArrayRef<RunTurn> runs) {
  for (auto [number, run] : llvm::enumerate(runs)) {
    microBatches.push_back(run.getMicroBatch());
    ofBody[run.run.getTaskAttr().getAttr()].push_back(
        {run.getMicroBatch(), number});
  }
}

std::optional<size_t> Recorders::find(WaitOp wait, size_t number) const {
  if (!wait.getBodyAttr())
    return number;
  auto found = ofBody.find(wait.getBodyAttr().getAttr());
  if (found == ofBody.end())
    return std::nullopt;
  ArrayRef<Recorder> runs = found->second;
  std::optional<size_t> last;
  for (const Recorder &each : runs) {
    if (each.microBatch == microBatches[number] || runs.size() == 1)
      return each.number < number ? std::optional(each.number) : std::nullopt;
    if (each.number < number)
      last = each.number;
  }
  return last;
}
