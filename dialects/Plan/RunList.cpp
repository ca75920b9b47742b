// Lists the runs of an entry, turn by turn.

#include "dialects/Plan/RunList.h"

using namespace mlir;
using namespace accel::plan;

int64_t accel::plan::countProofTurns(ProgramOp program) {
  int64_t slots = 1;
  for (auto buffer : program.getOps<BufferOp>())
    slots = std::max<int64_t>(slots, buffer.getSlots());
  return 2 * slots;
}

SmallVector<RunTurn> accel::plan::listRuns(EntryOp entry, int64_t most) {
  SmallVector<RunTurn> list;
  auto add = [&](SegmentOp segment, int64_t turn) {
    for (auto run : segment.getOps<RunOp>())
      list.push_back({run, turn});
  };
  for (Operation &op : entry.getBody().front()) {
    if (auto segment = dyn_cast<SegmentOp>(op))
      add(segment, 0);
    auto loop = dyn_cast<LoopOp>(op);
    int64_t turns = loop ? int64_t(loop.getTrips()) : 0;
    for (int64_t turn = 0; turn < std::min(turns, most); ++turn)
      for (auto segment : loop.getOps<SegmentOp>())
        add(segment, turn);
  }
  return list;
}
