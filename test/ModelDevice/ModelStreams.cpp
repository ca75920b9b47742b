// Enqueueing, and the inspection of what was enqueued.

#include "ModelStreams.h"

#include "Runner.h"

#include <cstdio>

namespace accel::rt::model {

ModelStreams::ModelStreams(const StreamPlan &plan, StreamWatcher &watcher,
                           const ModelOptions &options, ModelMemory &memory)
    : watcher(watcher), options(options), memory(memory), order(options.order),
      numStreams(plan.names.size()), timeline(numStreams, plan.events),
      joined(numStreams + 1), abroad(numStreams + 1) {
  memory.setStreams(true);
  if (!plan.program)
    return;
  infos = describeProgram(*plan.program);
  program = plan.program->name;
}

const CommandInfo *ModelStreams::infoOf(const Work &work) const {
  size_t number = static_cast<size_t>(work.number);
  if (number < infos.size())
    return &infos[number];
  if (work.kind == Work::Kind::Device)
    return &static_cast<ModelTask &>(*work.task).info;
  return nullptr;
}

std::string ModelStreams::describe(const CommandInfo &info,
                                   const Event &event) const {
  return info.describe() +
         (event.microBatch < 0
              ? ""
              : " on micro-batch " + std::to_string(event.microBatch));
}

bool ModelStreams::isDropped(const Work &work) const {
  return program == options.program && options.lost.count(work.number);
}

void ModelStreams::refuse(Status status, const Node *node) {
  if (status.ok() || !failure.status.ok())
    return;
  const CommandInfo *info = infoOf(*node->step.work);
  failure = {Status::error((info ? describe(*info, node->event) : "a command") +
                           " " + status.message()),
             node->step.work};
}

void ModelStreams::enqueue(const Step &step, Turn turn) {
  hasBegun = true;
  bool isLost = isDropped(*step.work);
  if (!failure.status.ok() || (isLost && step.work->kind != Work::Kind::Wait))
    return;
  ++numEnqueued;
  refuse(timeline.add(step, turn, isLost), timeline.last());
  memory.setUnderWay(timeline.nodes().size());
}

Status ModelStreams::capture(const std::vector<Step> &steps,
                             std::unique_ptr<Graph> &graph) {
  if (hasBegun)
    return Status::error("captures a segment after commands were enqueued");
  std::vector<Step> kept;
  std::vector<bool> isLost;
  for (const Step &step : steps) {
    const CommandInfo *info = infoOf(*step.work);
    bool isFile = info && info->isFile && !step.work->isPoison;
    if (isFile || !step.work->isCapturable)
      return Status::error("captures " +
                           (info ? info->describe() : "a command") +
                           ", which may stand in no graph");
    isLost.push_back(isDropped(*step.work));
    if (isLost.back() && step.work->kind != Work::Kind::Wait) {
      isLost.pop_back();
      continue;
    }
    kept.push_back(step);
  }
  auto made = std::make_unique<Captured>();
  ACCEL_RT_RETURN_IF_ERROR(timeline.capture(kept, isLost, *made));
  graph = std::move(made);
  return Status();
}

void ModelStreams::replay(Graph &graph, Turn turn) {
  hasBegun = true;
  if (!failure.status.ok())
    return;
  ++numReplays;
  refuse(timeline.replay(static_cast<Captured &>(graph), turn),
         timeline.last());
  memory.setUnderWay(timeline.nodes().size());
}

Failure ModelStreams::join() {
  if (failure.status.ok())
    failure = inspect();
  if (failure.status.ok())
    failure = Runner(timeline.nodes(), numStreams, order, watcher,
                     [this](const Work &work) { return infoOf(work); })
                  .run();
  if (!failure.status.ok() && failure.status.message() != kAbortedMessage)
    watcher.fails();
  if (options.tells)
    std::fprintf(stderr,
                 "model device: joined %zu replays of captures, %zu commands "
                 "beside them\n",
                 numReplays, numEnqueued);
  numReplays = numEnqueued = 0;
  joined = timeline.counts();
  joined.push_back(abroad[numStreams]);
  abroadAt.clear();
  timeline.clear();
  memory.setUnderWay(0);
  for (size_t stream = 0; stream < numStreams; ++stream)
    watcher.rests(stream);
  return failure;
}

static void raise(Clock &clock, const Clock &other) {
  for (size_t stream = 0; stream < clock.size(); ++stream)
    clock[stream] = std::max(clock[stream], other[stream]);
}

Failure ModelStreams::inspect() {
  if (options.lostWaits)
    countLost();
  const auto &nodes = timeline.nodes();
  // A node stands behind earlier ones only.
  std::vector<Clock> clocks;
  for (const Node &node : nodes) {
    Clock clock = joined;
    for (size_t before : node.behind)
      raise(clock, clocks[before]);
    const CommandInfo *info = infoOf(*node.step.work);
    if (info && options.inspects)
      if (Status status = touch(node, *info, clock); !status.ok())
        return {std::move(status), node.step.work};
    clock[node.event.stream] = node.event.index;
    if (info && options.inspects && node.is(Work::Kind::Host) &&
        info->record >= 0)
      if (Status status = meet(node, *info, clock); !status.ok())
        return {std::move(status), node.step.work};
    clocks.push_back(std::move(clock));
  }
  return {};
}

/// The views of a work. Poison is a fill of one that its command releases.
static std::vector<ViewAccess> viewsOf(const Work &work,
                                       const CommandInfo &info) {
  if (!work.isPoison)
    return info.views;
  std::vector<ViewAccess> views =
      static_cast<ModelTask &>(*work.task).info.views;
  for (const ViewAccess &release : info.releases)
    if (release.number == views.front().number)
      views.front() = release;
  return views;
}

bool ModelStreams::conflict(const Node &a, const Node &b) const {
  const CommandInfo *infos[2] = {infoOf(*a.step.work), infoOf(*b.step.work)};
  if (!infos[0] || !infos[1])
    return false;
  bool isPoison = a.step.work->isPoison || b.step.work->isPoison;
  if (infos[0]->isCollective && infos[1]->isCollective && !isPoison)
    return true;
  auto forViews = [&](size_t which, auto &&f) {
    const Node &node = which == 0 ? a : b;
    const Work &work = *node.step.work;
    std::vector<ViewAccess> views = viewsOf(work, *infos[which]);
    for (size_t i = 0; i < views.size(); ++i)
      if (views[i].access != Access::None)
        views[i].runs.forEach([&](int64_t begin, int64_t end) {
          Address at = work.places[i].at(node.microBatch);
          f((at + begin).value, (at + end).value,
            views[i].access != Access::Read);
        });
  };
  bool found = false;
  forViews(0, [&](uint64_t begin, uint64_t end, bool writes) {
    forViews(1, [&](uint64_t from, uint64_t to, bool alsoWrites) {
      found |= begin < to && from < end && (writes || alsoWrites);
    });
  });
  return found;
}

void ModelStreams::countLost() const {
  // How many commands, without records and waits, have ended before each node:
  // with the lost waits, and without.
  std::vector<Clock> whole, mutant;
  std::vector<std::vector<const Node *>> commands(numStreams);
  for (const Node &node : timeline.nodes()) {
    Clock with(numStreams), without(numStreams);
    auto stand = [&](size_t before, Clock &clock,
                     const std::vector<Clock> &clocks) {
      for (size_t stream = 0; stream < numStreams; ++stream)
        clock[stream] = std::max(clock[stream], clocks[before][stream]);
    };
    for (size_t before : node.behind) {
      stand(before, with, whole);
      stand(before, without, mutant);
    }
    if (node.lostRecord != kNone)
      stand(node.lostRecord, with, whole);
    options.lostWaits->seen += node.isLost;
    if (!node.is(Work::Kind::Record) && !node.is(Work::Kind::Wait)) {
      options.lostWaits->freed += with != without;
      for (size_t stream = 0; stream < numStreams; ++stream)
        for (uint64_t i = without[stream]; i < with[stream]; ++i)
          options.lostWaits->conflicts += conflict(*commands[stream][i], node);
      auto &own = commands[node.event.stream];
      own.push_back(&node);
      with[node.event.stream] = without[node.event.stream] = own.size();
    }
    whole.push_back(std::move(with));
    mutant.push_back(std::move(without));
  }
}

Status ModelStreams::touch(const Node &node, const CommandInfo &info,
                           const Clock &clock) {
  const Work &work = *node.step.work;
  if (work.isPoison) {
    Status status;
    const ViewAccess view = viewsOf(work, info).front();
    Address at = work.places.front().at(node.microBatch);
    view.runs.forEach([&](int64_t begin, int64_t end) {
      if (!status.ok())
        return;
      if (auto conflict = memory.history().release(
              (at + begin).value, (at + end).value, node.event, clock))
        status = tell(*conflict, view, info, node.event, /*writes=*/true);
    });
    return status;
  }
  // Ranks meet in the order in which they come to collectives.
  if (info.isCollective) {
    if (lastCollective && clock[lastCollective->stream] < lastCollective->index)
      return Status::error(
          "found two collectives that no event orders, so that ranks may meet "
          "in another order: " +
          describe(info, node.event) + " and " +
          describe(infos[static_cast<size_t>(lastCollective->command)],
                   *lastCollective));
    lastCollective = node.event;
  }
  return access(
      info, [&](size_t i) { return work.places[i].at(node.microBatch); },
      node.event, clock);
}

Status ModelStreams::access(const CommandInfo &info, const FindView &at,
                            const Event &by, const Clock &clock) {
  History &history = memory.history();
  Status status;
  for (bool writes : {false, true})
    for (size_t i = 0; i < info.views.size(); ++i) {
      const ViewAccess &view = info.views[i];
      if (view.access == Access::None ||
          view.access == (writes ? Access::Read : Access::Write))
        continue;
      Address first = at(i);
      view.runs.forEach([&](int64_t from, int64_t to) {
        if (!status.ok())
          return;
        uint64_t begin = (first + from).value, end = (first + to).value;
        std::optional<Conflict> conflict =
            writes ? history.write(begin, end, by, clock, view.root)
                   : history.read(begin, end, by, clock, view.root,
                                  !view.isScratch);
        if (conflict)
          status = tell(*conflict, view, info, by, writes);
      });
    }
  return status;
}

/// Where a stream meets one of another engine, whose commands this device does
/// not see: they are held against the bytes when it waits for them, behind what
/// they have waited for themselves. Requires that they touch the same bytes on
/// all ranks.
Status ModelStreams::meet(const Node &node, const CommandInfo &info,
                          Clock &clock) {
  if (node.step.work->number == info.record) {
    crossed[info.record] = clock;
    return Status();
  }
  const CommandInfo &record = infos[static_cast<size_t>(info.record)];
  int64_t first = info.record;
  while (first > 0 && infos[static_cast<size_t>(first - 1)].body == record.body)
    --first;
  int64_t &next =
      abroadAt.try_emplace({first, node.microBatch}, first).first->second;
  raise(abroad, joined);
  for (; next < info.record; ++next) {
    const CommandInfo &other = infos[static_cast<size_t>(next)];
    if (auto met = crossed.find(other.record); met != crossed.end())
      raise(abroad, met->second);
    Event by{numStreams, abroad[numStreams] + 1, next, node.event.microBatch};
    ACCEL_RT_RETURN_IF_ERROR(access(
        other,
        [&](size_t i) {
          const ViewAccess &view = other.views[i];
          return memory.begin(view.space) +
                 (view.inArena.at(node.microBatch) - Address{});
        },
        by, abroad));
    ++abroad[numStreams];
  }
  raise(clock, abroad);
  return Status();
}

Status ModelStreams::tell(const Conflict &conflict, const ViewAccess &view,
                          const CommandInfo &info, const Event &by,
                          bool writes) const {
  std::string what = describe(info, by) + (writes ? " writes " : " reads ") +
                     memory.describe(conflict.begin, conflict.end);
  if (!view.buffer.empty())
    what += ", in buffer " + inQuotes(view.buffer);
  if (conflict.kind == Conflict::Kind::Unwritten)
    return Status::error(what + ", which nothing has written");
  std::string other = "a command";
  if (conflict.other.command >= 0) {
    // Works of a test that are no program's are not told apart.
    size_t number = static_cast<size_t>(conflict.other.command);
    if (number < infos.size())
      other = describe(infos[number], conflict.other);
  }
  switch (conflict.kind) {
  case Conflict::Kind::Released:
    return Status::error(what + ", which " + other + " has released");
  case Conflict::Kind::Overwritten:
    return Status::error(what + ", which " + other +
                         " has written through another buffer");
  default:
    return Status::error("found a race: " + what + ", and " + other +
                         (conflict.otherWrites ? " writes" : " reads") +
                         " them, and no event orders the two");
  }
}

} // namespace accel::rt::model
