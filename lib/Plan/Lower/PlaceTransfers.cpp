// Where messages stand in the run list of a stage: receives ahead of their
// readers, sends behind what is made.

#include "StageTransfers.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

void StageTransfers::goOnTo(dist::RunOp run, RunListWriter &list) {
  Stretch next{kAfter + 1, 0};
  if (run)
    next = getStretch(run.getTaskAttr());
  auto runExchanges = [&](Stretch end) {
    while (!exchanges.empty() && exchanges.begin()->first < end) {
      list.run(exchanges.begin()->second, 0);
      exchanges.erase(exchanges.begin());
    }
  };
  if (hasQueued()) {
    listQueued(next, list);
    return runExchanges(next);
  }
  runExchanges(std::min(next, Stretch{kMicroBatches, 0}));
  if (next == Stretch{kMicroBatches, 0})
    for (auto &[ends, channel] : channels)
      if (channel->posting.early && !channel->sends)
        runUpTo(*channel, channel->posting.ahead, list);
  if (next <= Stretch{kMicroBatches, 0})
    return;
  for (auto &[ends, channel] : channels)
    if (channel->sends)
      runUpTo(*channel, channel->next, list);
  runExchanges(next);
}

void StageTransfers::runUpTo(Channel &channel, int64_t end,
                             RunListWriter &list) {
  end = std::min<int64_t>(end, schedule.getMicroBatches());
  for (; channel.unlisted < end; ++channel.unlisted)
    list.run(channel.body, channel.unlisted);
}

/// A value has been sent when its buffer is wanted again: until then the stream
/// has time.
LogicalResult StageTransfers::addSend(Channel &channel, dist::RunOp run,
                                      RunListWriter &list) {
  int64_t due = static_cast<int64_t>(run.getOffset()) - kKeptForSending;
  if (!run.getTurn()) {
    runUpTo(channel, due + 1, list);
    return success();
  }
  if (due < 0)
    return run.emitOpError() << "expected the first " << kKeptForSending
                             << " micro-batches of a task that sends outside "
                                "of loops, found micro-batch "
                             << due + kKeptForSending << " in one";
  list.run(channel.body, due);
  channel.unlisted += run.getTrips();
  return success();
}

/// A value is received while one before it is read, or earlier.
LogicalResult StageTransfers::addReceive(Channel &channel, dist::RunOp run,
                                         RunListWriter &list) {
  int64_t first = run.getOffset(), end = first + run.getTrips(),
          count = schedule.getMicroBatches(), ahead = channel.posting.ahead;
  if (!run.getTurn()) {
    runUpTo(channel, first + ahead + 1, list);
    return success();
  }
  if (first == 0 || end + ahead > count)
    return run.emitOpError()
           << "expected the first micro-batch and the last " << ahead
           << " of a task that receives outside of loops, found micro-batches "
           << first << " to " << end - 1 << " in one";
  list.run(channel.body, first + ahead);
  channel.unlisted += run.getTrips();
  return success();
}

/// Lists the messages of stretches before `end` that stand in front of the run
/// at hand.
void StageTransfers::listQueued(Stretch end, RunListWriter &list) {
  for (; listed < queued.size(); ++listed) {
    const QueuedMessage &message = queued[listed];
    if (message.before > reached ||
        getStretch(FlatSymbolRefAttr::get(message.ends.first)) >= end)
      return;
    list.run(channels.find(message.ends)->second->body, message.microBatch);
  }
}

LogicalResult StageTransfers::addBefore(dist::RunOp run, RunListWriter &list) {
  if (hasQueued()) {
    listQueued({kAfter + 1, 0}, list);
    reached += run.getTrips();
    return success();
  }
  for (auto &[ends, each] : channels) {
    Channel &channel = *each;
    if (channel.task != run.getTaskAttr().getAttr())
      continue;
    int64_t first = run.getOffset();
    if (first != channel.next)
      return run.emitOpError() << "expected a task that exchanges messages to "
                                  "run on its micro-batches in their order, "
                                  "next on "
                               << channel.next << ", found " << first;
    channel.next = first + run.getTrips();
    if (failed(channel.sends ? addSend(channel, run, list)
                             : addReceive(channel, run, list)))
      return failure();
  }
  return success();
}
