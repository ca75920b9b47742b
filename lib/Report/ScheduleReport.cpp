// `--report=schedule`: the order that the program has, played with what its
// tasks take.

#include "PipelineFigures.h"
#include "Reports.h"
#include "Table.h"
#include "lib/Pipeline/DrawSchedule.h"
#include "lib/Pipeline/NamedSchedules.h"
#include "lib/Pipeline/Synthesise.h"
#include "lib/Stages/Work.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace accel;
using namespace accel::report;
using pipeline::TaskKind;

/// Tables and pictures count in this much work; of a trace the second is that
/// of a rank that does a million times as much, so that it fits a screen.
static constexpr double kMega = 1e6, kTera = 1e12;

/// Op handles are pointers.
static dist::ScheduleOp getOp(const PipelineFigures &figures) {
  return figures.schedule;
}

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
  for (auto stage : getOp(figures).getBody().getOps<dist::StageOp>()) {
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

/// The simulator wants a backward of each chunk. One that there is not takes
/// nothing, where the named schedule would run it.
static void addAbsent(const PipelineFigures &figures,
                      pipeline::Schedule &schedule) {
  auto choice = pipeline::parseChoice(figures.name);
  if (!choice)
    return llvm::consumeError(choice.takeError());
  if (!choice->named || figures.placement.ranks == 1)
    return;
  auto named = llvm::cantFail(pipeline::generate(
      *choice->named,
      {figures.placement.ranks, choice->chunksPerRank, figures.microBatches}));
  for (auto [there, whole] : llvm::zip_equal(schedule.ranks, named.ranks)) {
    std::vector<pipeline::Task> rest;
    for (const pipeline::Task &task : whole)
      if (task.kind == TaskKind::Forward || hasBackward(figures, task.chunk))
        rest.push_back(task);
    if (rest == there)
      there = whole;
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
    return getOp(figures).emitError()
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
    return getOp(figures).emitError() << llvm::toString(played.takeError());
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
  problem.costs.secondsPerTransfer = stages::kFlopsPerMessage / unit;
  problem.costs.secondsPerByte = stages::kFlopsPerByteSent / unit;
  for (const ChunkFigures &chunk : figures.chunks) {
    auto get = [&](dist::TaskKind kind) {
      auto found = chunk.tasks.find(kind);
      return found == chunk.tasks.end() ? 0 : found->second.work / unit;
    };
    pipeline::ChunkCost &cost = problem.costs.chunks.emplace_back();
    cost.forward = get(dist::TaskKind::forward);
    cost.backward = get(dist::TaskKind::backward);
    cost.backwardInput = get(dist::TaskKind::backward_input);
    cost.backwardWeight = get(dist::TaskKind::backward_weight);
    cost.inputBytes = chunk.keptBytes;
    cost.weightBytes = chunk.keptForWeightsBytes;
  }
  return problem;
}

static double getIdle(const pipeline::Synthesis &step, int64_t rank) {
  const pipeline::Simulation &played = step.simulation;
  return played.seconds > 0 ? 1 - played.busySeconds[rank] / played.seconds : 0;
}

static int64_t countForwards(const pipeline::Synthesis &step, int64_t rank) {
  return llvm::count_if(step.schedule.ranks[rank],
                        [](const pipeline::Task &task) {
                          return task.kind == TaskKind::Forward;
                        });
}

/// Of both parts where they are in two.
static int64_t countBackwards(const PipelineFigures &figures,
                              const pipeline::Synthesis &step, int64_t rank) {
  return llvm::count_if(step.schedule.ranks[rank],
                        [&](const pipeline::Task &task) {
                          return task.kind != TaskKind::Forward &&
                                 hasBackward(figures, task.chunk);
                        });
}

/// Where there is no backward nothing is kept for it.
static std::vector<int64_t> countKeptChunks(const PipelineFigures &figures,
                                            const pipeline::Synthesis &step) {
  pipeline::Schedule schedule = step.schedule;
  for (std::vector<pipeline::Task> &tasks : schedule.ranks)
    llvm::erase_if(tasks, [&](const pipeline::Task &task) {
      return !hasBackward(figures, task.chunk);
    });
  return countLiveActivations(schedule);
}

static void printText(const PipelineFigures &figures,
                      const pipeline::Synthesis &step, llvm::raw_ostream &os) {
  auto round = [](double number) {
    return llvm::formatv("{0:f2}", number).str();
  };
  auto share = [](double part) {
    return llvm::formatv("{0:f1} %", 100 * part).str();
  };
  const pipeline::Simulation &played = step.simulation;
  std::vector<int64_t> kept = countKeptChunks(figures, step);
  os << "schedule " << figures.name << " of '" << getOp(figures).getEntry()
     << "' on " << describeSize(figures) << ":\n";
  Table ranks({"stage", "chunks", "forwards", "backwards", "busy", "idle",
               "activations kept, in chunks", "kept of a rank"});
  for (int64_t rank = 0; rank < figures.placement.ranks; ++rank)
    ranks.add({std::to_string(rank),
               std::to_string(llvm::count(figures.placement.rankOfChunk, rank)),
               std::to_string(countForwards(step, rank)),
               std::to_string(countBackwards(figures, step, rank)),
               round(played.busySeconds[rank]), share(getIdle(step, rank)),
               std::to_string(kept[rank]),
               formatBytes(played.activationBytes[rank])});
  ranks.print(os);
  os << "all micro-batches take " << round(played.seconds)
     << ", ranks are idle for " << share(played.getBubbleFraction())
     << " of it, and for " << round(played.getLongestIdle())
     << " at most between their first task and their last\n"
     << "(in millions of floating-point operations, a byte moved counted as "
     << int64_t(stages::kFlopsPerByteMoved) << ", a byte sent as "
     << int64_t(stages::kFlopsPerByteSent) << ", a message as "
     << int64_t(stages::kFlopsPerMessage) << ")\n";
}

static void printJson(const PipelineFigures &figures,
                      const pipeline::Synthesis &step, llvm::raw_ostream &os) {
  const pipeline::Simulation &played = step.simulation;
  std::vector<int64_t> kept = countKeptChunks(figures, step);
  llvm::json::OStream out(os, 1);
  out.object([&] {
    out.attribute("entry", getOp(figures).getEntry());
    out.attribute("schedule", figures.name);
    out.attribute("micro_batches", figures.microBatches);
    out.attribute("work", played.seconds * kMega);
    out.attribute("idle", played.getBubbleFraction());
    out.attribute("longest_bubble", played.getLongestIdle() * kMega);
    out.attributeArray("stages", [&] {
      for (int64_t rank = 0; rank < figures.placement.ranks; ++rank)
        out.object([&] {
          out.attribute("stage", rank);
          out.attribute("forwards", countForwards(step, rank));
          out.attribute("backwards", countBackwards(figures, step, rank));
          out.attribute("work", played.busySeconds[rank] * kMega);
          out.attribute("idle", getIdle(step, rank));
          out.attribute("chunks_kept", kept[rank]);
          out.attribute("bytes_kept_of_rank", played.activationBytes[rank]);
        });
    });
  });
  os << "\n";
}

LogicalResult report::printSchedule(ModuleOp module, StringRef file,
                                    llvm::raw_ostream &os, bool json) {
  FailureOr<PipelineFigures> figures = countPipeline(module);
  if (failed(figures))
    return failure();
  if (figures->chunks.back().tasks.size() < 2)
    return getOp(*figures).emitError()
           << "expected a step with --report=schedule, which goes forward and "
              "backward, found a program that goes forward";
  bool isTrace = !json && file.ends_with(".json");
  pipeline::Problem problem = makeProblem(*figures, isTrace ? kTera : kMega);
  pipeline::Schedule schedule = readSchedule(*figures);
  addAbsent(*figures, schedule);
  if (failed(checkTasks(*figures, schedule)) ||
      failed(checkOrder(*figures, schedule, problem)))
    return failure();
  pipeline::Synthesis step =
      evaluate(figures->name, std::move(schedule), problem);
  if (json) {
    printJson(*figures, step, os);
  } else if (isTrace || file.ends_with(".svg")) {
    pipeline::DrawnStep drawn{step.name, step.schedule, problem.edges,
                              step.simulation, "MFLOP"};
    (isTrace ? pipeline::writeScheduleTrace
             : pipeline::writeScheduleSvg)(os, drawn);
  } else {
    printText(*figures, step, os);
  }
  return success();
}
