// Sums over chunks, and which schedule is counted.

#include "CountTasks.h"

#include "dialects/Accel/Accel.h"
#include "dialects/NN/Entry.h"
#include "lib/Pipeline/NamedSchedules.h"

using namespace mlir;
using namespace accel;
using namespace accel::report;

int64_t ChunkFigures::getFlops(bool backward) const {
  int64_t flops = 0;
  for (auto &[kind, figures] : tasks)
    if (backward != (kind == dist::TaskKind::forward))
      flops += figures.flops;
  return flops;
}

double ChunkFigures::getWork() const {
  double work = 0;
  for (auto &[kind, figures] : tasks)
    work += figures.work;
  return work;
}

int64_t PipelineFigures::getChunk(int64_t stage, int64_t own) const {
  for (auto [chunk, rank] : llvm::enumerate(placement.rankOfChunk))
    if (rank == stage && own-- == 0)
      return chunk;
  llvm_unreachable("the placement has every task's chunk");
}

double PipelineFigures::getStageWork(int64_t stage) const {
  double work = 0;
  for (auto [chunk, rank] : llvm::enumerate(placement.rankOfChunk))
    if (rank == stage)
      work += chunks[chunk].getWork();
  return work;
}

double PipelineFigures::getMeanWork() const {
  double work = 0;
  for (const ChunkFigures &chunk : chunks)
    work += chunk.getWork();
  return work / placement.ranks;
}

std::string report::describeSize(const PipelineFigures &figures) {
  auto count = [](int64_t number, StringRef one, StringRef several) {
    return (Twine(number) + " " + (number == 1 ? one : several)).str();
  };
  return count(figures.placement.ranks, "stage", "stages") + ", " +
         count(figures.microBatches, "micro-batch", "micro-batches");
}

/// The step's schedule, or that of the forward program.
static dist::ScheduleOp findSchedule(ModuleOp module) {
  for (nn::EntryKind kind : {nn::EntryKind::step, nn::EntryKind::forward})
    for (auto schedule : module.getOps<dist::ScheduleOp>()) {
      auto entry = module.lookupSymbol<func::FuncOp>(schedule.getEntry());
      if (entry && nn::getEntryKind(entry) == kind)
        return schedule;
    }
  return nullptr;
}

FailureOr<PipelineFigures> report::countPipeline(ModuleOp module) {
  PipelineFigures figures;
  figures.schedule = findSchedule(module);
  if (!figures.schedule)
    return module.emitError()
           << "expected a program with tasks and their schedule, found none";
  figures.microBatches = figures.schedule.getMicroBatches();
  auto decisions = module->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
  auto decided = decisions ? decisions.getAs<StringAttr>("schedule") : nullptr;
  int64_t stages =
      llvm::range_size(figures.schedule.getBody().getOps<dist::StageOp>());
  figures.name = decided ? decided.str() : stages == 1 ? "sequential" : "1f1b";
  if (stages == 1) {
    figures.placement = pipeline::Placement::linear(1);
  } else {
    auto choice = pipeline::parseChoice(figures.name);
    if (!choice)
      return figures.schedule.emitError() << llvm::toString(choice.takeError());
    // What is searched for has a chunk on each stage.
    figures.placement =
        choice->named ? choice->named->place(stages, choice->chunksPerRank)
                      : pipeline::Placement::linear(stages);
  }
  // Where the chunks lie is said by the schedule's name alone.
  WalkResult known = figures.schedule.walk([&](dist::RunOp run) {
    auto task = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        run, run.getTaskAttr());
    auto what = task->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr);
    if (what.getStage() < stages &&
        what.getChunk() < llvm::count(figures.placement.rankOfChunk,
                                      int64_t(what.getStage())))
      return WalkResult::advance();
    run.emitError() << "expected a chunk that schedule '" << figures.name
                    << "' has on " << stages << " stages, found chunk "
                    << what.getChunk() << " of stage " << what.getStage();
    return WalkResult::interrupt();
  });
  if (known.wasInterrupted())
    return failure();
  countTasks(figures);
  return figures;
}
