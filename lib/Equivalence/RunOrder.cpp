// Runs as intervals of micro-batches: two loops are compared by their places,
// two runs of one loop by the turns in which they reach a micro-batch.

#include "RunOrder.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

RunOrder::RunOrder(dist::ScheduleOp schedule) : schedule(schedule) {
  for (auto stage : schedule.getOps<dist::StageOp>())
    for (auto [place, op] : llvm::enumerate(stage.getBody().front())) {
      if (auto run = dyn_cast<dist::RunOp>(op))
        add(run, place, 0);
      if (auto loop = dyn_cast<dist::LoopOp>(op))
        for (auto [inLoop, run] : llvm::enumerate(loop.getOps<dist::RunOp>()))
          add(run, place, inLoop);
    }
}

void RunOrder::add(dist::RunOp run, unsigned place, unsigned inLoop) {
  int64_t first = run.getOffset();
  StringAttr task = run.getTaskAttr().getAttr();
  stages[task] = run->getParentOfType<dist::StageOp>().getIndex();
  spans[task].push_back({first, first + run.getTrips(), place, inLoop});
}

bool RunOrder::Span::comesBefore(int64_t microBatch, const Span &other,
                                 int64_t otherMicroBatch) const {
  return std::tuple(place, microBatch - first, inLoop) <
         std::tuple(other.place, otherMicroBatch - other.first, other.inLoop);
}

LogicalResult RunOrder::verify() {
  int64_t microBatches = schedule.getMicroBatches();
  for (auto &[task, found] : spans) {
    SmallVector<Span> sorted(found);
    llvm::sort(sorted, [](const Span &lhs, const Span &rhs) {
      return lhs.first < rhs.first;
    });
    int64_t end = 0;
    bool follow = true;
    for (const Span &span : sorted) {
      follow &= span.first == end;
      end = span.end;
    }
    if (isRepeated(task) && !(follow && end == microBatches))
      return schedule.emitOpError()
             << "expected a run of @" << task.getValue() << " for each of "
             << microBatches << " micro-batches, found some twice or never";
  }
  return success();
}

bool RunOrder::isRepeated(StringAttr task) const {
  auto found = spans.find(task);
  return found != spans.end() &&
         (found->second.size() > 1 ||
          found->second.front().end > found->second.front().first + 1);
}

std::optional<int64_t> RunOrder::findBefore(StringAttr source,
                                            StringAttr target) const {
  auto sources = spans.find(source), targets = spans.find(target);
  if (targets == spans.end())
    return std::nullopt;
  if (sources == spans.end())
    return targets->second.front().first;
  if (stages.lookup(source) != stages.lookup(target))
    return std::nullopt; // the target waits: whether it ends, listAll says
  bool same = isRepeated(source) && isRepeated(target);
  for (const Span &from : sources->second)
    for (const Span &to : targets->second) {
      // In one loop both reach the next micro-batch a turn later: what holds of
      // one holds of all. Otherwise the last of one and the first of the other.
      int64_t made = same ? std::max(from.first, to.first) : from.end - 1;
      int64_t read = same ? made : to.first;
      if (same && made >= std::min(from.end, to.end))
        continue; // none in common
      if (!from.comesBefore(made, to, read))
        return read;
    }
  return std::nullopt;
}

namespace {
/// A run of a task on a micro-batch.
using Run = std::pair<StringAttr, int64_t>;
} // namespace

/// Stages go on as far as what they wait for lets them, until none can.
FailureOr<std::vector<StringAttr>> RunOrder::listAll() {
  std::vector<std::vector<Run>> lists;
  for (auto stage : schedule.getOps<dist::StageOp>()) {
    std::vector<Run> &list = lists.emplace_back();
    for (Operation &op : stage.getBody().front()) {
      auto loop = dyn_cast<dist::LoopOp>(op);
      for (int64_t turn = 0; turn < (loop ? int64_t(loop.getTrips()) : 1);
           ++turn)
        op.walk([&](dist::RunOp run) {
          list.push_back(
              {run.getTaskAttr().getAttr(), int64_t(run.getOffset()) + turn});
        });
    }
  }
  llvm::DenseMap<StringAttr, SmallVector<StringAttr>> sources;
  for (auto edge : schedule.getOps<dist::EdgeOp>()) {
    auto &list = sources[edge.getTargetAttr().getAttr()];
    if (!llvm::is_contained(list, edge.getSourceAttr().getAttr()))
      list.push_back(edge.getSourceAttr().getAttr());
  }
  llvm::DenseMap<StringAttr, int64_t> ended; // how many runs
  llvm::DenseSet<Run> done;
  auto isThere = [&](StringAttr source, const Run &run) {
    if (!isRepeated(source))
      return ended.lookup(source) > 0;
    return isRepeated(run.first)
               ? done.contains({source, run.second})
               : ended.lookup(source) == int64_t(schedule.getMicroBatches());
  };
  auto findMissing = [&](const Run &run) {
    for (StringAttr source : sources.lookup(run.first))
      if (!isThere(source, run))
        return source;
    return StringAttr();
  };
  std::vector<StringAttr> order;
  SmallVector<size_t> next(lists.size());
  for (bool goesOn = true; goesOn;) {
    goesOn = false;
    for (auto [stage, list] : llvm::enumerate(lists))
      for (; next[stage] < list.size() && !findMissing(list[next[stage]]);
           ++next[stage], goesOn = true) {
        const Run &run = list[next[stage]];
        done.insert(run);
        ++ended[run.first];
        order.push_back(run.first);
      }
  }
  for (auto [stage, list] : llvm::enumerate(lists))
    if (next[stage] < list.size()) {
      const Run &run = list[next[stage]];
      return schedule.emitOpError()
             << "never ends: on stage " << stage << ", @"
             << run.first.getValue() << " of micro-batch " << run.second
             << " waits for @" << findMissing(run).getValue()
             << ", which cannot run before it";
    }
  return order;
}
