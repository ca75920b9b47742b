// `--report=schedule`: the order that the program has, played with what its
// tasks take.

#include "PlaySchedule.h"
#include "Reports.h"
#include "Table.h"
#include "lib/Cost/Work.h"
#include "lib/Pipeline/DrawSchedule.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace accel;
using namespace accel::report;
using pipeline::TaskKind;

/// Tables and pictures count in this much work; of a trace the second is that
/// of a rank that does a million times as much, so that it fits a screen.
static constexpr double kMega = 1e6, kTera = 1e12;

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
  return llvm::count_if(
      step.schedule.ranks[rank], [&](const pipeline::Task &task) {
        return task.kind != TaskKind::Forward && isThere(figures, task);
      });
}

static void printScheduleText(const PipelineFigures &figures,
                              const PlayedSchedule &schedule,
                              llvm::raw_ostream &os) {
  const pipeline::Synthesis &step = schedule.step;
  auto round = [](double number) {
    return llvm::formatv("{0:f2}", number).str();
  };
  auto share = [](double part) {
    return llvm::formatv("{0:f1} %", 100 * part).str();
  };
  const pipeline::Simulation &played = step.simulation;
  os << "schedule " << figures.name << " of '"
     << figures.getSchedule().getEntry() << "' on " << describeSize(figures)
     << ":\n";
  Table ranks({"stage", "chunks", "forwards", "backwards", "busy", "idle",
               "activations kept, in chunks", "kept of a rank"});
  for (int64_t rank = 0; rank < figures.placement.ranks; ++rank)
    ranks.add({std::to_string(rank),
               std::to_string(llvm::count(figures.placement.rankOfChunk, rank)),
               std::to_string(countForwards(step, rank)),
               std::to_string(countBackwards(figures, step, rank)),
               round(played.busySeconds[rank]), share(getIdle(step, rank)),
               std::to_string(schedule.keptChunks[rank]),
               formatBytes(played.activationBytes[rank])});
  ranks.print(os);
  os << "all micro-batches take " << round(played.seconds)
     << ", ranks are idle for " << share(played.getBubbleFraction())
     << " of it, and for " << round(played.getLongestIdle())
     << " at most between their first task and their last\n"
     << "(in millions of floating-point operations, a byte moved counted as "
     << int64_t(cost::kFlopsPerByteMoved) << ", a byte sent as "
     << int64_t(cost::kFlopsPerByteSent) << ", a message as "
     << int64_t(cost::kFlopsPerMessage) << ")\n";
}

static void printScheduleJson(const PipelineFigures &figures,
                              const PlayedSchedule &schedule,
                              llvm::raw_ostream &os) {
  const pipeline::Synthesis &step = schedule.step;
  const pipeline::Simulation &played = step.simulation;
  llvm::json::OStream out(os, 1);
  out.object([&] {
    out.attribute("entry", figures.getSchedule().getEntry());
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
          out.attribute("chunks_kept", schedule.keptChunks[rank]);
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
    return figures->getSchedule().emitError()
           << "expected a step with --report=schedule, which goes forward and "
              "backward, found a program that goes forward";
  bool isTrace = !json && file.ends_with(".json");
  FailureOr<PlayedSchedule> played =
      playSchedule(*figures, isTrace ? kTera : kMega);
  if (failed(played))
    return failure();
  if (json) {
    printScheduleJson(*figures, *played, os);
  } else if (isTrace || file.ends_with(".svg")) {
    const pipeline::Synthesis &step = played->step;
    pipeline::DrawnStep drawn{step.name, step.schedule, played->problem.edges,
                              step.simulation, "MFLOP"};
    (isTrace ? pipeline::writeScheduleTrace
             : pipeline::writeScheduleSvg)(os, drawn);
  } else {
    printScheduleText(*figures, *played, os);
  }
  return success();
}
