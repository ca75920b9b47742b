// Orders of micro-batches as loops: of one stage by ScheduleKind, of several by
// the generators of lib/Pipeline.

#include "TaskOrder.h"

#include "DecidedOrder.h"
#include "dialects/Accel/Accel.h"
#include "dialects/NN/Entry.h"
#include "lib/Pipeline/Fold.h"
#include "lib/Pipeline/NamedSchedules.h"

using namespace mlir;
using namespace accel;
using namespace accel::tasks;

static constexpr dist::TaskKind kKinds[kHomes] = {
    dist::TaskKind::count,          dist::TaskKind::prepare,
    dist::TaskKind::forward,        dist::TaskKind::backward,
    dist::TaskKind::backward_input, dist::TaskKind::backward_weight,
    dist::TaskKind::update};

static Home getHome(pipeline::TaskKind kind) {
  switch (kind) {
  case pipeline::TaskKind::Forward:
    return Home::Forward;
  case pipeline::TaskKind::Backward:
    return Home::Backward;
  case pipeline::TaskKind::BackwardInput:
    return Home::BackwardInput;
  case pipeline::TaskKind::BackwardWeight:
    return Home::BackwardWeight;
  }
  llvm_unreachable("no other kind");
}

/// Runs whole backwards as their parts, one right after the other.
static void splitBackwards(std::vector<pipeline::Task> &list) {
  std::vector<pipeline::Task> parts;
  for (pipeline::Task task : list) {
    bool isWhole = task.kind == pipeline::TaskKind::Backward;
    if (isWhole)
      task.kind = pipeline::TaskKind::BackwardInput;
    parts.push_back(task);
    if (isWhole)
      parts.push_back(
          {pipeline::TaskKind::BackwardWeight, task.chunk, task.microBatch});
  }
  list = std::move(parts);
}

dist::TaskAttr TaskOrder::getTask(const Place &place) const {
  int64_t stage = placement.rankOfChunk[place.chunk];
  int64_t own = llvm::count(
      ArrayRef(placement.rankOfChunk).take_front(place.chunk), stage);
  return dist::TaskAttr::get(context, kKinds[static_cast<int>(place.home)],
                             stage, own, place.round);
}

static DictionaryAttr getDecisions(func::FuncOp entry) {
  return entry->getParentOfType<ModuleOp>()->getAttrOfType<DictionaryAttr>(
      kDecisionsAttr);
}

/// The name of the schedule that was decided on; empty if none was.
static StringRef getDecided(func::FuncOp entry) {
  DictionaryAttr decisions = getDecisions(entry);
  auto chosen = decisions ? decisions.getAs<StringAttr>("schedule") : nullptr;
  return chosen ? chosen.getValue() : StringRef();
}

/// The turns [first, last) that remain a loop; the others are written out.
/// Transfers run ahead and behind: the first two micro-batches of a task and
/// the last two stand outside of loops, so that the turns of one find alike
/// what has been sent and received.
static std::pair<int64_t, int64_t> getLoopTurns(const pipeline::Loop &loop,
                                                int64_t microBatches) {
  constexpr int64_t kOutside = 2;
  int64_t first = 0, last = loop.trips;
  for (const pipeline::Task &task : loop.tasks) {
    first = std::max(first, kOutside - task.microBatch);
    last = std::min(last, microBatches - kOutside - task.microBatch);
  }
  // Turns that are further apart are written out, and one is no loop.
  return loop.step == 1 && last - first > 1 ? std::pair(first, last)
                                            : std::pair(loop.trips, loop.trips);
}

/// The schedule of that name; of `auto` the order that was decided on.
static FailureOr<pipeline::Schedule>
makeSchedule(const pipeline::Choice &choice, func::FuncOp entry,
             const TaskHomes &homes, int64_t stages, int64_t microBatches) {
  // Without backwards all orders are one. Of other chunks there is none.
  bool isPlain = nn::getEntryKind(entry) != nn::EntryKind::step ||
                 homes.countChunks() != stages;
  if (!choice.named && !isPlain)
    return readOrder(entry, getDecisions(entry), stages, microBatches);
  const pipeline::NamedSchedule &named =
      choice.named ? *choice.named
                   : *llvm::cantFail(pipeline::parseChoice("1f1b")).named;
  auto made =
      pipeline::generate(named, {stages, choice.chunksPerRank, microBatches});
  if (!made)
    return entry.emitError() << llvm::toString(made.takeError());
  return std::move(*made);
}

FailureOr<TaskOrder> TaskOrder::choose(func::FuncOp entry,
                                       const TaskHomes &homes,
                                       int64_t microBatches, int64_t stages) {
  int64_t chunks = homes.countChunks();
  TaskOrder result(entry.getContext(), microBatches);
  StringRef decided = getDecided(entry);
  bool isStep = nn::getEntryKind(entry) == nn::EntryKind::step;
  if (stages == 1) {
    if (chunks > 1)
      return entry.emitError()
             << "expected one chunk on one stage, found " << chunks;
    result.placement = pipeline::Placement::linear(1);
    StringRef name =
        decided.empty() ? StringRef(dist::ScheduleKind::kDefault) : decided;
    auto kind = dist::ScheduleKind::parse(isStep ? name : "sequential");
    if (!kind)
      return entry.emitError()
             << "expected a decided schedule " << dist::ScheduleKind::getNames()
             << ", found " << name;
    if (kind->getInFlight(microBatches) > microBatches)
      return entry.emitError()
             << "expected at least the " << kind->getInFlight(microBatches)
             << " micro-batches that schedule " << name
             << " has in flight, found " << microBatches;
    std::vector<Part> &parts = result.parts.emplace_back();
    for (const dist::SchedulePart &part : kind->list(microBatches)) {
      Part &added = parts.emplace_back();
      added.trips = part.trips;
      for (const dist::ScheduledTask &each : part.tasks)
        added.runs.push_back(
            {{each.kind == dist::TaskKind::forward ? Home::Forward
                                                   : Home::Backward},
             each.offset});
    }
    return result;
  }
  auto choice = pipeline::parseChoice(decided.empty() ? "1f1b" : decided);
  if (!choice)
    return entry.emitError() << llvm::toString(choice.takeError());
  auto schedule = makeSchedule(*choice, entry, homes, stages, microBatches);
  if (failed(schedule))
    return failure();
  result.placement = schedule->placement;
  for (const std::vector<pipeline::Task> &list : schedule->ranks)
    result.splits |= llvm::any_of(list, [](pipeline::Task task) {
      return task.kind == pipeline::TaskKind::BackwardInput;
    });
  // Outputs that the first chunks make ask nothing of the others.
  if (isStep ? chunks != result.placement.countChunks()
             : chunks > result.placement.countChunks())
    return entry.emitError()
           << "expected the model cut into the "
           << result.placement.countChunks() << " chunks that schedule "
           << (decided.empty() ? "1f1b" : decided) << " has on " << stages
           << " stages, found " << chunks;
  for (std::vector<pipeline::Task> &list : schedule->ranks) {
    if (result.splits)
      splitBackwards(list);
    if (!isStep)
      llvm::erase_if(list, [](const pipeline::Task &task) {
        return task.kind != pipeline::TaskKind::Forward;
      });
    std::vector<Part> &parts = result.parts.emplace_back();
    for (const pipeline::Loop &loop : pipeline::fold(list)) {
      auto add = [&](int64_t turn, int64_t trips) {
        Part &added = parts.emplace_back();
        added.trips = trips;
        for (const pipeline::Task &task : loop.tasks)
          added.runs.push_back({{getHome(task.kind), task.chunk},
                                task.microBatch + turn * loop.step});
      };
      auto [first, last] = getLoopTurns(loop, microBatches);
      for (int64_t turn = 0; turn < first; ++turn)
        add(turn, 1);
      if (first < last)
        add(first, last - first);
      for (int64_t turn = last; turn < loop.trips; ++turn)
        add(turn, 1);
    }
  }
  return result;
}

void TaskOrder::write(int64_t stage, const std::map<Place, StringRef> &names,
                      OpBuilder &list, Location loc) const {
  auto run = [&](int64_t trips, ArrayRef<std::pair<Place, int64_t>> runs) {
    SmallVector<std::pair<StringRef, int64_t>> there;
    for (auto &[place, microBatch] : runs)
      if (auto name = names.find(place); name != names.end())
        there.push_back({name->second, microBatch});
    if (there.empty())
      return;
    OpBuilder into = list;
    if (trips > 1) {
      auto loop = dist::LoopOp::create(list, loc, trips);
      into = OpBuilder::atBlockEnd(&loop.getBody().emplaceBlock());
    }
    for (auto [name, microBatch] : there)
      dist::RunOp::create(into, loc, name, microBatch, /*turn=*/trips > 1);
  };
  auto runAll = [&](Home home, int64_t trips) {
    for (auto &[place, name] : names)
      if (place.home == home && placement.rankOfChunk[place.chunk] == stage)
        run(trips, {{place, 0}});
  };
  runAll(Home::Count, microBatches);
  runAll(Home::Prepare, 1);
  for (const Part &part : parts[stage])
    run(part.trips, part.runs);
  runAll(Home::Update, 1);
}
