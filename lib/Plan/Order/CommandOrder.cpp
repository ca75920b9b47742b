// Computes happens-before by letting the streams of each entry run: a stream
// goes on until it meets a wait for an event that is not recorded yet.

#include "CommandOrder.h"

using namespace mlir;
using namespace accel::plan;

SmallVector<EntryOp> accel::plan::getEntriesInOrder(ProgramOp program) {
  SmallVector<EntryOp> entries(program.getOps<EntryOp>());
  llvm::stable_sort(entries, [](EntryOp lhs, EntryOp rhs) {
    return lhs.getKind() == kLoadEntry && rhs.getKind() != kLoadEntry;
  });
  return entries;
}

SmallVector<ViewAttr> accel::plan::getViews(CommandOpInterface command) {
  SmallVector<ViewAttr> views = command.getReads();
  llvm::append_range(views, command.getWrites());
  return views;
}

FailureOr<CommandOrder> CommandOrder::compute(ProgramOp program) {
  CommandOrder order;
  llvm::StringMap<unsigned> streams;
  for (auto body : program.getOps<BodyOp>())
    body.walk([&, &commands = order.bodies[body.getSymNameAttr()]](
                  CommandOpInterface command) {
      auto stream =
          streams.try_emplace(command.getStreamName(), streams.size()).first;
      commands.push_back({command, stream->second});
    });
  order.numStreams = streams.size();
  order.lengths.assign(order.numStreams, 0);
  order.clocks.assign(order.numStreams, Clock(order.numStreams, 0));
  for (auto [number, entry] : llvm::enumerate(getEntriesInOrder(program)))
    if (failed(order.addEntry(entry, number)))
      return failure();
  return order;
}

static void join(SmallVectorImpl<unsigned> &clock, ArrayRef<unsigned> other) {
  for (auto [mine, theirs] : llvm::zip_equal(clock, other))
    mine = std::max(mine, theirs);
}

LogicalResult CommandOrder::addEntry(EntryOp entry, unsigned number) {
  // All streams begin when all have ended.
  Clock start(lengths.begin(), lengths.end());
  clocks.assign(numStreams, start);

  struct Queued {
    CommandOpInterface command;
    size_t run; // its number, a turn counting as one
  };
  SmallVector<RunTurn> runs =
      ProofTurns(entry->getParentOfType<ProgramOp>()).listRuns(entry);
  Recorders recorders(runs);
  std::vector<std::vector<Queued>> queues(numStreams);
  for (auto [number, run] : llvm::enumerate(runs))
    for (auto [command, stream] : bodies[run.run.getTaskAttr().getAttr()])
      if (run.lists(command))
        queues[stream].push_back({command, number});
  std::vector<size_t> next(numStreams, 0);
  llvm::DenseMap<std::pair<size_t, StringAttr>, Clock> events; // of each run
  auto advance = [&](unsigned stream) {
    auto [command, run] = queues[stream][next[stream]];
    Clock &clock = clocks[stream];
    if (auto wait = dyn_cast<WaitOp>(command.getOperation())) {
      auto recorder = recorders.find(wait, run);
      auto recorded = recorder ? events.find({*recorder, wait.getEventAttr()})
                               : events.end();
      if (recorded == events.end())
        return false;
      join(clock, recorded->second);
    }
    ++next[stream];
    unsigned ordinal = ++lengths[stream];
    executions.push_back({command, runs[run], number, stream, ordinal,
                          ArrayRef(clock).copy(storage)});
    clock[stream] = ordinal;
    if (auto record = dyn_cast<RecordOp>(command.getOperation()))
      events[{run, record.getEventAttr()}] = clock;
    return true;
  };
  bool progress = true;
  while (progress) {
    progress = false;
    for (unsigned stream = 0; stream < numStreams; ++stream)
      while (next[stream] < queues[stream].size() && advance(stream))
        progress = true;
  }
  for (unsigned stream = 0; stream < numStreams; ++stream)
    if (next[stream] < queues[stream].size())
      return queues[stream][next[stream]].command.emitOpError()
             << "waits for an event that no run before it records";
  return success();
}
