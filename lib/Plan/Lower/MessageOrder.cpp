// Runs a schedule as if messages took no time, and reads off when each is made.

#include "MessageOrder.h"

#include "ScheduleRuns.h"

#include <map>

using namespace mlir;
using namespace accel;
using namespace accel::plan;

namespace {
struct Run : ScheduledRun {
  int64_t start = -1; ///< in forwards of a chunk
};

/// Stages and their runs, in the order of the schedule.
class Timeline {
public:
  explicit Timeline(dist::ScheduleOp schedule)
      : schedule(schedule), tasks(listTasks(schedule)) {
    for (auto op : schedule.getOps<dist::StageOp>()) {
      std::vector<Run> &runs = stages.emplace_back();
      for (const ScheduledRun &run : listRuns(op)) {
        runs.push_back({run});
        ++count[run.task];
      }
    }
    for (auto edge : schedule.getOps<dist::EdgeOp>())
      sources[edge.getTargetAttr().getAttr()].push_back(
          edge.getSourceAttr().getAttr());
  }

  LogicalResult run();
  ArrayRef<Run> getRuns(int64_t stage) const { return stages[stage]; }
  /// When a task has made what it passes on.
  int64_t getMade(StringAttr task, int64_t microBatch) const {
    return made.lookup({task, microBatch});
  }
  dist::TaskKind getKind(StringAttr task) const {
    return tasks.lookup(task).getKind();
  }

private:
  /// When a run has all that it reads; nothing while that is not known.
  std::optional<int64_t> findReady(const Run &run) const;

  dist::ScheduleOp schedule;
  std::vector<std::vector<Run>> stages;
  llvm::DenseMap<StringAttr, dist::TaskAttr> tasks;
  llvm::DenseMap<StringAttr, int64_t> count, ended; ///< runs of each task
  llvm::DenseMap<StringAttr, int64_t> end;          ///< of those that ended
  llvm::DenseMap<StringAttr, SmallVector<StringAttr>> sources;
  llvm::DenseMap<std::pair<StringAttr, int64_t>, int64_t> made;
};
} // namespace

std::optional<int64_t> Timeline::findReady(const Run &run) const {
  int64_t ready = 0;
  for (StringAttr source : sources.lookup(run.task)) {
    if (!count.contains(source))
      continue;
    // What runs once gives to all micro-batches, or takes what they all give.
    if (count.lookup(source) == 1 || count.lookup(run.task) == 1) {
      if (ended.lookup(source) < count.lookup(source))
        return std::nullopt;
      ready = std::max(ready, end.lookup(source));
      continue;
    }
    auto known = made.find({source, run.microBatch});
    if (known == made.end())
      return std::nullopt;
    ready = std::max(ready, known->second);
  }
  return ready;
}

LogicalResult Timeline::run() {
  std::vector<size_t> next(stages.size());
  std::vector<int64_t> free(stages.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (auto [number, runs] : llvm::enumerate(stages))
      while (next[number] < runs.size()) {
        Run &run = runs[next[number]];
        std::optional<int64_t> ready = findReady(run);
        if (!ready)
          break;
        run.start = std::max(free[number], *ready);
        free[number] = run.start + getDuration(getKind(run.task));
        // A backward passes on what its first part makes.
        made[{run.task, run.microBatch}] = run.start + 1;
        ++ended[run.task];
        end[run.task] = free[number];
        ++next[number];
        moved = true;
      }
  }
  for (auto [number, runs] : llvm::enumerate(stages))
    if (next[number] < runs.size())
      return schedule.emitOpError()
             << "never ends: @" << runs[next[number]].task.getValue()
             << " of micro-batch " << runs[next[number]].microBatch
             << " waits for what cannot run before it";
  return success();
}

FailureOr<std::vector<QueuedMessage>>
accel::plan::orderMessages(dist::ScheduleOp schedule, int64_t stage) {
  Timeline timeline(schedule);
  if (failed(timeline.run()))
    return failure();
  // Counts come before all else on every stage.
  auto isCount = [&](StringAttr task) {
    return timeline.getKind(task) == dist::TaskKind::count;
  };
  ArrayRef<Run> runs = timeline.getRuns(stage);
  auto findFirst = [&](auto fits) {
    return size_t(llvm::find_if(runs, fits) - runs.begin());
  };
  std::map<std::tuple<bool, int64_t, size_t, int64_t>, QueuedMessage> order;
  size_t channel = 0;
  for (const auto &ends : listChannels(schedule)) {
    ++channel;
    StringAttr giver = ends.first, reader = ends.second;
    size_t given = findFirst([&](const Run &run) { return run.task == giver; }),
           read = findFirst([&](const Run &run) { return run.task == reader; });
    if (given == runs.size() && read == runs.size())
      continue; // of other stages
    for (int64_t m = 0; m < int64_t(schedule.getMicroBatches()); ++m) {
      int64_t made = timeline.getMade(giver, m);
      size_t before = given < runs.size()
                          ? 1 + findFirst([&](const Run &run) {
                              return run.task == giver && run.microBatch == m;
                            })
                          : findFirst([&](const Run &run) {
                              return run.start >= made &&
                                     !isOnce(timeline.getKind(run.task)) &&
                                     isCount(run.task) == isCount(reader);
                            });
      order[{!isCount(giver), made, channel, m}] = {ends, m, before};
    }
  }
  std::vector<QueuedMessage> messages;
  size_t before = 0;
  for (auto &[key, message] : order) {
    before = std::max(before, message.before);
    messages.push_back({message.ends, message.microBatch, before});
  }
  return messages;
}

void accel::plan::unrollExchanging(dist::StageOp stage) {
  llvm::DenseSet<StringAttr> exchanging;
  for (auto [giver, reader] :
       listChannels(cast<dist::ScheduleOp>(stage->getParentOp())))
    exchanging.insert_range(ArrayRef{giver, reader});
  for (auto loop : llvm::make_early_inc_range(stage.getOps<dist::LoopOp>())) {
    if (llvm::none_of(loop.getOps<dist::RunOp>(), [&](dist::RunOp run) {
          return exchanging.contains(run.getTaskAttr().getAttr());
        }))
      continue;
    OpBuilder builder(loop);
    for (int64_t turn = 0; turn < int64_t(loop.getTrips()); ++turn)
      for (auto run : loop.getOps<dist::RunOp>())
        dist::RunOp::create(builder, run.getLoc(), run.getTask(),
                            run.getOffset() + uint64_t(turn), /*turn=*/false);
    loop.erase();
  }
}
