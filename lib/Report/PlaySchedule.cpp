// Reads the order of the tasks, and has the simulator play it.

#include "PlaySchedule.h"

#include "lib/Cost/Work.h"

using namespace mlir;
using namespace accel;
using namespace accel::report;
using pipeline::TaskKind;

static std::optional<TaskKind> getKind(dist::TaskKind kind) {
  switch (kind) {
  case dist::TaskKind::forward:
    return TaskKind::Forward;
  case dist::TaskKind::backward:
    return TaskKind::Backward;
  case dist::TaskKind::backward_input:
    return TaskKind::BackwardInput;
  case dist::TaskKind::backward_weight:
    return TaskKind::BackwardWeight;
  default:
    return std::nullopt;
  }
}

/// The runs of each stage that the pipeline is made of, turn by turn.
static pipeline::Schedule readSchedule(const PipelineFigures &figures) {
  pipeline::Schedule schedule;
  schedule.placement = figures.placement;
  schedule.microBatches = figures.microBatches;
  for (auto stage : figures.getSchedule().getBody().getOps<dist::StageOp>()) {
    std::vector<pipeline::Task> &tasks = schedule.ranks.emplace_back();
    auto add = [&](dist::RunOp run, int64_t turn) {
      auto task = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
          run, run.getTaskAttr());
      auto what = task->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr);
      if (auto kind = getKind(what.getKind()))
        tasks.push_back({*kind,
                         figures.getChunk(what.getStage(), what.getChunk()),
                         int64_t(run.getOffset()) + turn});
    };
    for (Operation &each : stage.getBody().front()) {
      if (auto run = dyn_cast<dist::RunOp>(each))
        add(run, 0);
      else if (auto loop = dyn_cast<dist::LoopOp>(each))
        for (int64_t turn = 0; turn < int64_t(loop.getTrips()); ++turn)
          for (auto run : loop.getBody().getOps<dist::RunOp>())
            add(run, turn);
    }
  }
  return schedule;
}

/// A chunk whose weights are frozen, and all before it, has none.
static bool hasBackward(const PipelineFigures &figures, int64_t chunk) {
  return figures.chunks[chunk].tasks.size() > 1;
}

static dist::TaskKind getKind(TaskKind kind) {
  switch (kind) {
  case TaskKind::Forward:
    return dist::TaskKind::forward;
  case TaskKind::Backward:
    return dist::TaskKind::backward;
  case TaskKind::BackwardInput:
    return dist::TaskKind::backward_input;
  case TaskKind::BackwardWeight:
    return dist::TaskKind::backward_weight;
  }
  llvm_unreachable("no other kind");
}

bool report::isThere(const PipelineFigures &figures,
                     const pipeline::Task &task) {
  return figures.chunks[task.chunk].tasks.count(getKind(task.kind));
}

/// The simulator wants a backward of each chunk. What there is not of it takes
/// nothing: beside its other part, or else at the rank's end.
static void addAbsent(const PipelineFigures &figures,
                      pipeline::Schedule &schedule) {
  bool isSplit = false;
  for (const auto &tasks : schedule.ranks)
    isSplit |= llvm::any_of(tasks, [](const pipeline::Task &task) {
      return task.kind == TaskKind::BackwardInput ||
             task.kind == TaskKind::BackwardWeight;
    });
  for (auto [rank, tasks] : llvm::enumerate(schedule.ranks)) {
    std::vector<pipeline::Task> all;
    auto add = [&](TaskKind kind, int64_t chunk, int64_t microBatch) {
      pipeline::Task part{kind, chunk, microBatch};
      if (!isThere(figures, part))
        all.push_back(part);
    };
    for (const pipeline::Task &task : tasks) {
      if (task.kind == TaskKind::BackwardWeight)
        add(TaskKind::BackwardInput, task.chunk, task.microBatch);
      all.push_back(task);
      if (task.kind == TaskKind::BackwardInput)
        add(TaskKind::BackwardWeight, task.chunk, task.microBatch);
    }
    // Later chunks first, whose gradients the others wait for.
    for (int64_t chunk = figures.placement.countChunks() - 1; chunk >= 0;
         --chunk) {
      if (figures.placement.rankOfChunk[chunk] != int64_t(rank) ||
          hasBackward(figures, chunk))
        continue;
      for (int64_t batch = 0; batch < figures.microBatches; ++batch) {
        add(isSplit ? TaskKind::BackwardInput : TaskKind::Backward, chunk,
            batch);
        if (isSplit)
          add(TaskKind::BackwardWeight, chunk, batch);
      }
    }
    tasks = std::move(all);
  }
}

/// The text of a schedule may be anybody's: each chunk goes through each micro-
/// batch once, forward and backward.
static LogicalResult checkTasks(const PipelineFigures &figures,
                                const pipeline::Schedule &schedule) {
  std::map<std::tuple<TaskKind, int64_t, int64_t>, int64_t> counts;
  for (const auto &rank : schedule.ranks)
    for (const pipeline::Task &task : rank)
      ++counts[{task.kind, task.chunk, task.microBatch}];
  auto refuse = [&](TaskKind kind, int64_t chunk, int64_t microBatch,
                    int64_t found) {
    return figures.getSchedule().emitError()
           << "expected one run of "
           << pipeline::toString({kind, chunk, microBatch}) << ", found "
           << found;
  };
  for (int64_t chunk = 0; chunk < figures.placement.countChunks(); ++chunk)
    for (int64_t batch = 0; batch < figures.microBatches; ++batch) {
      bool isSplit = counts.count({TaskKind::BackwardInput, chunk, batch});
      SmallVector<TaskKind> kinds{TaskKind::Forward};
      if (isSplit)
        kinds.append({TaskKind::BackwardInput, TaskKind::BackwardWeight});
      else
        kinds.push_back(TaskKind::Backward);
      for (TaskKind kind : kinds) {
        auto found = counts.find({kind, chunk, batch});
        int64_t count = found == counts.end() ? 0 : found->second;
        if (count != 1)
          return refuse(kind, chunk, batch, count);
        counts.erase(found);
      }
    }
  if (counts.empty())
    return success();
  auto &[task, count] = *counts.begin();
  return refuse(std::get<0>(task), std::get<1>(task), std::get<2>(task), count);
}

/// Whether it ends, where slots are no matter.
static LogicalResult checkOrder(const PipelineFigures &figures,
                                const pipeline::Schedule &schedule,
                                const pipeline::Problem &problem) {
  pipeline::Slots slots(figures.placement.countChunks());
  for (int64_t chunk = 0; chunk < slots.countChunks(); ++chunk)
    for (size_t kind = 0; kind < pipeline::kSlotKinds; ++kind)
      slots.at(chunk, pipeline::SlotKind(kind)) = figures.microBatches;
  auto played = pipeline::simulate(schedule, problem.edges, slots, nullptr,
                                   problem.costs);
  if (!played)
    return figures.getSchedule().emitError()
           << llvm::toString(played.takeError());
  return success();
}

/// The edges between chunks, with their bytes; costs in units of so much work.
static pipeline::Problem makeProblem(const PipelineFigures &figures,
                                     double unit) {
  pipeline::Problem problem;
  problem.ranks = figures.placement.ranks;
  problem.microBatches = figures.microBatches;
  std::map<std::pair<int64_t, int64_t>, double> edges;
  for (const Crossing &crossing : figures.crossings)
    if (crossing.isRepeated && crossing.isOfForward &&
        crossing.from < crossing.to)
      edges[{crossing.from, crossing.to}] += crossing.bytes;
  for (auto [ends, bytes] : edges) {
    problem.edges.push_back({ends.first, ends.second});
    problem.costs.edgeBytes.push_back(bytes);
  }
  problem.costs.secondsPerTransfer = cost::kFlopsPerMessage / unit;
  problem.costs.secondsPerByte = cost::kFlopsPerByteSent / unit;
  for (const ChunkFigures &chunk : figures.chunks) {
    auto get = [&](TaskKind kind) {
      auto found = chunk.tasks.find(getKind(kind));
      return found == chunk.tasks.end() ? 0 : found->second.work / unit;
    };
    pipeline::ChunkCost &cost = problem.costs.chunks.emplace_back();
    cost.forward = get(TaskKind::Forward);
    cost.backward = get(TaskKind::Backward);
    cost.backwardInput = get(TaskKind::BackwardInput);
    cost.backwardWeight = get(TaskKind::BackwardWeight);
    if (auto found = chunk.tasks.find(dist::TaskKind::backward);
        found != chunk.tasks.end() && found->second.workToGradient > 0)
      cost.backwardToGradient = found->second.workToGradient / unit;
    cost.inputBytes = chunk.keptBytes;
    cost.weightBytes = chunk.keptForWeightsBytes;
  }
  return problem;
}

/// Where there is no backward nothing is kept for it.
static std::vector<int64_t> countKeptChunks(const PipelineFigures &figures,
                                            pipeline::Schedule schedule) {
  for (std::vector<pipeline::Task> &tasks : schedule.ranks)
    llvm::erase_if(tasks, [&](const pipeline::Task &task) {
      return !hasBackward(figures, task.chunk);
    });
  return countLiveActivations(schedule);
}

FailureOr<PlayedSchedule> report::playSchedule(const PipelineFigures &figures,
                                               double unit) {
  PlayedSchedule played;
  played.problem = makeProblem(figures, unit);
  pipeline::Schedule schedule = readSchedule(figures);
  addAbsent(figures, schedule);
  if (failed(checkTasks(figures, schedule)) ||
      failed(checkOrder(figures, schedule, played.problem)))
    return failure();
  played.keptChunks = countKeptChunks(figures, schedule);
  played.step = evaluate(figures.name, std::move(schedule), played.problem);
  return played;
}
