// Simulates a schedule without time.

#include "PostingTimes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

namespace {
struct Run {
  StringAttr task;
  int64_t microBatch;
};

struct Stage {
  std::vector<Run> runs;
  size_t next = 0;
  bool hasEnded() const { return next == runs.size(); }
};

/// What two tasks of different stages pass on.
struct Channel {
  Posting *posting;
  StringAttr source, target;
  size_t receiver; ///< the target's stage
  int64_t made = 0, sent = 0, read = 0;
};

class Simulation {
public:
  explicit Simulation(dist::ScheduleOp schedule);
  LogicalResult run(Postings &postings);

private:
  bool advance(Stage &stage);
  bool mayRun(const Run &run);
  int64_t countPosted(const Channel &channel) const;
  bool postEarlier();
  bool repeats(StringAttr task) const { return count.lookup(task) > 1; }

  dist::ScheduleOp schedule;
  std::vector<Stage> stages;
  llvm::DenseMap<StringAttr, size_t> stageOf;
  llvm::DenseMap<StringAttr, int64_t> count, ended; // runs of each task
  llvm::DenseMap<StringAttr, SmallVector<StringAttr>> sources;
  std::vector<Channel> channels;
};
} // namespace

Simulation::Simulation(dist::ScheduleOp schedule) : schedule(schedule) {
  for (auto op : schedule.getOps<dist::StageOp>()) {
    Stage &stage = stages.emplace_back();
    auto add = [&](dist::RunOp run, int64_t turn) {
      StringAttr task = run.getTaskAttr().getAttr();
      stage.runs.push_back({task, int64_t(run.getOffset()) + turn});
      stageOf[task] = stages.size() - 1;
      ++count[task];
    };
    for (Operation &each : op.getBody().front()) {
      if (auto run = dyn_cast<dist::RunOp>(each))
        add(run, 0);
      if (auto loop = dyn_cast<dist::LoopOp>(each))
        for (int64_t turn = 0, trips = loop.getTrips(); turn < trips; ++turn)
          for (auto run : loop.getOps<dist::RunOp>())
            add(run, turn);
    }
  }
  for (auto edge : schedule.getOps<dist::EdgeOp>())
    sources[edge.getTargetAttr().getAttr()].push_back(
        edge.getSourceAttr().getAttr());
}

/// How many receives of a channel the reader's stage has posted.
int64_t Simulation::countPosted(const Channel &channel) const {
  const Stage &stage = stages[channel.receiver];
  bool isNext =
      !stage.hasEnded() && stage.runs[stage.next].task == channel.target;
  int64_t reached = channel.read + isNext; // runs of the reader
  if (reached == 0)
    return channel.posting->early ? channel.posting->ahead : 0;
  return reached + channel.posting->ahead;
}

bool Simulation::mayRun(const Run &run) {
  for (const Channel &channel : channels)
    if ((channel.target == run.task && channel.sent <= run.microBatch) ||
        (channel.source == run.task &&
         channel.sent <= run.microBatch - kKeptForSending))
      return false;
  // What runs once gives to all micro-batches, or takes what they all give.
  for (StringAttr source : sources.lookup(run.task))
    if (stageOf.contains(source) && (!repeats(source) || !repeats(run.task)) &&
        ended.lookup(source) < count.lookup(source))
      return false;
  return true;
}

bool Simulation::advance(Stage &stage) {
  bool moved = false;
  for (; !stage.hasEnded() && mayRun(stage.runs[stage.next]); moved = true) {
    StringAttr task = stage.runs[stage.next].task;
    ++ended[task];
    for (Channel &channel : channels) {
      channel.made += channel.source == task;
      channel.read += channel.target == task;
    }
    ++stage.next;
  }
  return moved;
}

/// Of what has been made and has not been sent; says whether there is any.
bool Simulation::postEarlier() {
  bool changed = false;
  for (Channel &channel : channels) {
    if (channel.made <= channel.sent || countPosted(channel) > channel.sent)
      continue;
    if (channel.read == 0 && !channel.posting->early)
      channel.posting->early = true;
    else
      ++channel.posting->ahead;
    changed = true;
  }
  return changed;
}

LogicalResult Simulation::run(Postings &postings) {
  while (true) {
    channels.clear();
    ended.clear();
    for (auto &[ends, posting] : postings)
      channels.push_back(
          {&posting, ends.first, ends.second, stageOf.lookup(ends.second)});
    for (Stage &stage : stages)
      stage.next = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (Stage &stage : stages)
        moved |= advance(stage);
      for (Channel &channel : channels) {
        int64_t sent = std::min(channel.made, countPosted(channel));
        moved |= sent > channel.sent;
        channel.sent = std::max(channel.sent, sent);
      }
    }
    if (llvm::all_of(stages, [](Stage &stage) { return stage.hasEnded(); }))
      return success();
    if (postEarlier())
      continue;
    for (Stage &stage : stages)
      if (!stage.hasEnded())
        return schedule.emitOpError()
               << "never ends: @" << stage.runs[stage.next].task.getValue()
               << " of micro-batch " << stage.runs[stage.next].microBatch
               << " waits for what cannot run before it";
  }
}

FailureOr<Postings> accel::plan::findPostings(dist::ScheduleOp schedule) {
  llvm::DenseMap<StringAttr, dist::TaskAttr> tasks;
  for (auto function :
       schedule->getParentOfType<ModuleOp>().getOps<func::FuncOp>())
    tasks[function.getSymNameAttr()] =
        function->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr);
  auto isOnce = [](dist::TaskAttr task) {
    return llvm::is_contained(
        {dist::TaskKind::prepare, dist::TaskKind::norm, dist::TaskKind::update},
        task.getKind());
  };
  Postings postings;
  for (auto edge : schedule.getOps<dist::EdgeOp>()) {
    StringAttr names[] = {edge.getSourceAttr().getAttr(),
                          edge.getTargetAttr().getAttr()};
    dist::TaskAttr source = tasks.lookup(names[0]),
                   target = tasks.lookup(names[1]);
    if (source.getStage() != target.getStage() && !isOnce(source) &&
        !isOnce(target))
      postings.insert({{names[0], names[1]}, {}});
  }
  if (failed(Simulation(schedule).run(postings)))
    return failure();
  return postings;
}
