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
  program.walk([&](CommandOpInterface command) {
    order.streamNumbers.try_emplace(command.getStreamName(),
                                    order.streamNumbers.size());
  });
  order.numStreams = order.streamNumbers.size();
  order.lengths.assign(order.numStreams, 0);
  order.clocks.assign(order.numStreams,
                      SmallVector<unsigned, 4>(order.numStreams, 0));
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
  SmallVector<unsigned, 4> start(lengths.begin(), lengths.end());
  clocks.assign(numStreams, start);

  struct Queued {
    CommandOpInterface command;
    size_t run; // its number, a turn counting as one
  };
  auto program = entry->getParentOfType<ProgramOp>();
  SmallVector<RunTurn> runs = ProofTurns(program).listRuns(entry);
  Recorders recorders(runs);
  std::vector<std::vector<Queued>> queues(numStreams);
  for (size_t number = 0; number < runs.size(); ++number)
    forEachCommand(
        program.lookupSymbol<BodyOp>(runs[number].run.getTask()), runs[number],
        [&](CommandOpInterface command) {
          queues[streamNumbers.lookup(command.getStreamName())].push_back(
              {command, number});
        });
  std::vector<size_t> next(numStreams, 0);
  llvm::DenseMap<std::pair<size_t, StringAttr>, SmallVector<unsigned, 4>>
      events; // of each run
  auto advance = [&](unsigned stream) {
    auto [command, run] = queues[stream][next[stream]];
    SmallVector<unsigned, 4> &clock = clocks[stream];
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
    executions.push_back({command, runs[run], number, stream, ordinal, clock});
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
