// Simulates a schedule.

#include "PostingTimes.h"

#include "ScheduleRuns.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>

using namespace mlir;
using namespace accel;
using namespace accel::plan;

namespace {
using Tasks = llvm::DenseMap<StringAttr, dist::TaskAttr>;

struct StageRuns {
  std::vector<ScheduledRun> runs;
  size_t next = 0;
  int64_t freeAt = 0; ///< The end of the run that has begun last.
  bool hasEnded() const { return next == runs.size(); }
};

/// What two tasks of different stages pass on.
struct Channel {
  Posting *posting;
  StringAttr target;
  size_t receiver; ///< the target's stage
  int64_t made = 0, sent = 0, read = 0;
};

/// Time counts in forwards of a chunk, all of which are alike, and messages
/// take none. Whether the stages come to their ends does not depend on that:
/// nobody has a choice of what to do next.
class Simulation {
public:
  Simulation(dist::ScheduleOp schedule, const Tasks &tasks);
  LogicalResult run(Postings &postings);

private:
  enum class Obstacle { None, Message, Other };

  bool begin(StageRuns &stage);
  Obstacle findObstacle(const StageRuns &stage) const;
  bool isBlocked(const Channel &channel, const ScheduledRun &run) const;
  bool pass();
  bool moveOn();
  int64_t countPosted(const Channel &channel) const;
  bool postEarlier(Channel &channel);
  bool postForSpeed();
  bool postForAnyEnd();
  bool repeats(StringAttr task) const { return count.lookup(task) > 1; }

  dist::ScheduleOp schedule;
  const Tasks &tasks;
  std::vector<StageRuns> stages;
  llvm::DenseMap<StringAttr, size_t> stageOf;
  llvm::DenseMap<StringAttr, int64_t> count, ended; // runs of each task
  llvm::DenseMap<StringAttr, SmallVector<StringAttr>> sources;
  std::vector<Channel> channels;
  /// Those that a task gives to, and that it reads.
  llvm::DenseMap<StringAttr, SmallVector<Channel *>> givenTo, readFrom;
  int64_t now = 0;
  /// When runs have made what they pass on, and when they end.
  std::multimap<int64_t, StringAttr> making, ending;
};
} // namespace

Simulation::Simulation(dist::ScheduleOp schedule, const Tasks &tasks)
    : schedule(schedule), tasks(tasks) {
  for (auto op : schedule.getOps<dist::StageOp>()) {
    stages.push_back({listRuns(op)});
    for (const ScheduledRun &run : stages.back().runs) {
      stageOf[run.task] = stages.size() - 1;
      ++count[run.task];
    }
  }
  for (auto edge : schedule.getOps<dist::EdgeOp>())
    sources[edge.getTargetAttr().getAttr()].push_back(
        edge.getSourceAttr().getAttr());
}

/// How many receives of a channel the reader's stage has posted.
int64_t Simulation::countPosted(const Channel &channel) const {
  const StageRuns &stage = stages[channel.receiver];
  bool isNext = !stage.hasEnded() && stage.freeAt <= now &&
                stage.runs[stage.next].task == channel.target;
  int64_t reached = channel.read + isNext; // runs of the reader
  if (reached == 0)
    return channel.posting->early ? channel.posting->ahead : 0;
  return reached + channel.posting->ahead;
}

/// Whether a run would make a value more than are kept for sending.
bool Simulation::isBlocked(const Channel &channel,
                           const ScheduledRun &run) const {
  return channel.sent <= run.microBatch - kKeptForSending;
}

/// What a stage that is free waits for, if it has anything to do.
Simulation::Obstacle Simulation::findObstacle(const StageRuns &stage) const {
  const ScheduledRun &run = stage.runs[stage.next];
  for (const Channel *channel : readFrom.lookup(run.task))
    if (channel->sent <= run.microBatch)
      return Obstacle::Other;
  // What runs once gives to all micro-batches, or takes what they all give.
  for (StringAttr source : sources.lookup(run.task))
    if (stageOf.contains(source) && (!repeats(source) || !repeats(run.task)) &&
        ended.lookup(source) < count.lookup(source))
      return Obstacle::Other;
  bool isKept = llvm::any_of(givenTo.lookup(run.task), [&](Channel *channel) {
    return isBlocked(*channel, run);
  });
  return isKept ? Obstacle::Message : Obstacle::None;
}

bool Simulation::begin(StageRuns &stage) {
  if (stage.hasEnded() || stage.freeAt > now ||
      findObstacle(stage) != Obstacle::None)
    return false;
  StringAttr task = stage.runs[stage.next].task;
  for (Channel *channel : readFrom.lookup(task))
    ++channel->read;
  stage.freeAt = now + getDuration(tasks.lookup(task).getKind());
  making.emplace(now + 1, task);
  ending.emplace(stage.freeAt, task);
  ++stage.next;
  return true;
}

/// Sends what has been made and is awaited.
bool Simulation::pass() {
  bool moved = false;
  for (Channel &channel : channels) {
    int64_t sent = std::min(channel.made, countPosted(channel));
    moved |= sent > channel.sent;
    channel.sent = std::max(channel.sent, sent);
  }
  return moved;
}

/// Goes to the next moment at which something is made or ends, if there is one.
bool Simulation::moveOn() {
  if (ending.empty())
    return false;
  now = ending.begin()->first;
  if (!making.empty())
    now = std::min(now, making.begin()->first);
  for (; !making.empty() && making.begin()->first == now;
       making.erase(making.begin()))
    for (Channel *channel : givenTo.lookup(making.begin()->second))
      ++channel->made;
  for (; !ending.empty() && ending.begin()->first == now;
       ending.erase(ending.begin()))
    ++ended[ending.begin()->second];
  return true;
}

/// Whether nothing is posted before the reader's first run, which has not
/// begun.
static bool isPostedLate(const Channel &channel) {
  return channel.read == 0 && !channel.posting->early;
}

/// Of what has been made and has not been sent; says whether there is any.
bool Simulation::postEarlier(Channel &channel) {
  if (channel.made <= channel.sent || countPosted(channel) > channel.sent)
    return false;
  if (isPostedLate(channel))
    channel.posting->early = true;
  else
    ++channel.posting->ahead;
  return true;
}

/// Where nothing but a message that nobody takes yet keeps a stage from going
/// on. More than two ahead are not worth what they keep.
bool Simulation::postForSpeed() {
  bool changed = false;
  for (const StageRuns &stage : stages) {
    if (stage.hasEnded() || stage.freeAt > now ||
        findObstacle(stage) != Obstacle::Message)
      continue;
    const ScheduledRun &run = stage.runs[stage.next];
    for (Channel *channel : givenTo.lookup(run.task))
      if (isBlocked(*channel, run) &&
          (channel->posting->ahead < 2 || isPostedLate(*channel)))
        changed |= postEarlier(*channel);
  }
  return changed;
}

bool Simulation::postForAnyEnd() {
  bool changed = false;
  for (Channel &channel : channels)
    changed |= postEarlier(channel);
  return changed;
}

LogicalResult Simulation::run(Postings &postings) {
  for (auto &[ends, posting] : postings)
    channels.push_back({&posting, ends.second, stageOf.lookup(ends.second)});
  for (auto [channel, ends] : llvm::zip_equal(channels, postings)) {
    givenTo[ends.first.first].push_back(&channel);
    readFrom[ends.first.second].push_back(&channel);
  }
  while (true) {
    bool moved = false;
    for (StageRuns &stage : stages)
      moved |= begin(stage);
    if (pass() || moved || postForSpeed() || moveOn())
      continue;
    if (llvm::all_of(stages, [](StageRuns &stage) { return stage.hasEnded(); }))
      return success();
    if (postForAnyEnd())
      continue;
    for (StageRuns &stage : stages)
      if (!stage.hasEnded())
        return schedule.emitOpError()
               << "never ends: @" << stage.runs[stage.next].task.getValue()
               << " of micro-batch " << stage.runs[stage.next].microBatch
               << " waits for what cannot run before it";
  }
}

FailureOr<Postings> accel::plan::findPostings(dist::ScheduleOp schedule) {
  Postings postings;
  for (const auto &ends : listChannels(schedule))
    postings.insert({ends, {}});
  if (failed(Simulation(schedule, listTasks(schedule)).run(postings)))
    return failure();
  return postings;
}
