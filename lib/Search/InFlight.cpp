// Counts by name, or through the order of the tasks.

#include "InFlight.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Dist/ScheduleKind.h"
#include "lib/Pipeline/NamedSchedules.h"
#include "lib/Tasks/DecidedOrder.h"

using namespace mlir;
using namespace accel;
using search::kScheduleKey;
using search::Layout;

static SmallVector<int64_t> countMostKept(const pipeline::Schedule &order) {
  SmallVector<int64_t> most;
  for (auto [stage, tasks] : llvm::enumerate(order.ranks)) {
    auto first = llvm::find(order.placement.rankOfChunk, stage);
    int64_t chunk = first - order.placement.rankOfChunk.begin(), now = 0;
    int64_t &peak = most.emplace_back(0);
    for (const pipeline::Task &task : tasks)
      if (task.chunk == chunk) {
        now += task.kind == pipeline::TaskKind::Forward;
        peak = std::max(peak, now);
        now -= task.kind == pipeline::TaskKind::Backward ||
               task.kind == pipeline::TaskKind::BackwardWeight;
      }
  }
  return most;
}

static InFlightDiagnostic refuse(ModuleOp module, StringRef expected,
                                 StringRef found) {
  return module.emitError() << "expected a schedule " << expected << " in '"
                            << kDecisionsAttr << "', found '" << found << "'";
}

/// The order of the tasks of several stages; one of none where there is no
/// step.
static FailureOr<std::optional<pipeline::Schedule>>
findOrder(ModuleOp module, DictionaryAttr decisions, StringRef name,
          int64_t stages, int64_t microBatches) {
  auto choice = pipeline::parseChoice(name);
  if (!choice) {
    llvm::consumeError(choice.takeError());
    return refuse(module, "of several stages", name);
  }
  if (!choice->named) {
    if (!decisions.contains(tasks::kOrderKey))
      return std::optional<pipeline::Schedule>();
    auto order = tasks::readOrder(module, decisions, stages, microBatches);
    if (failed(order))
      return failure();
    return std::optional(*order);
  }
  auto order = pipeline::generate(
      *choice->named, {stages, choice->chunksPerRank, microBatches});
  if (!order)
    return module.emitError() << llvm::toString(order.takeError());
  return std::optional(*order);
}

static StringRef getSchedule(DictionaryAttr decisions) {
  auto decided = decisions.getAs<StringAttr>(kScheduleKey);
  return decided ? decided.getValue() : StringRef(dist::ScheduleKind::kDefault);
}

FailureOr<SmallVector<int64_t>> search::countInFlight(ModuleOp module,
                                                      DictionaryAttr decisions,
                                                      int64_t stages,
                                                      int64_t microBatches) {
  StringRef name = getSchedule(decisions);
  if (stages == 1) {
    auto kind = dist::ScheduleKind::parse(name);
    if (!kind)
      return refuse(module, dist::ScheduleKind::getNames(), name);
    return SmallVector<int64_t>{kind->getInFlight(microBatches)};
  }
  auto order = findOrder(module, decisions, name, stages, microBatches);
  if (failed(order))
    return failure();
  // Without a step there is no order: it has nothing in flight.
  return *order ? countMostKept(**order) : SmallVector<int64_t>(stages, stages);
}

static DictionaryAttr getDecisions(ModuleOp module) {
  auto decisions = module->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
  return decisions ? decisions : DictionaryAttr::get(module.getContext());
}

FailureOr<Layout> Layout::of(ModuleOp module) {
  Layout layout;
  if (dist::MeshOp mesh = dist::MeshOp::of(module)) {
    layout.ranks = mesh.getRankCount();
    layout.stages = mesh.findAxisSize(dist::MeshOp::kPipelineAxis).value_or(1);
    layout.microBatches =
        mesh.findAxisSize(dist::MeshOp::kMicroBatchAxis).value_or(1);
  }
  layout.stageOfChunk = llvm::to_vector(llvm::seq<int64_t>(0, layout.stages));
  if (layout.stages == 1)
    return layout;
  DictionaryAttr decisions = getDecisions(module);
  if (auto counts = decisions.getAs<DenseI64ArrayAttr>(kInFlightKey))
    layout.inFlight = llvm::to_vector(counts.asArrayRef());
  auto order = findOrder(module, decisions, getSchedule(decisions),
                         layout.stages, layout.microBatches);
  if (failed(order))
    return failure();
  if (*order)
    layout.stageOfChunk = llvm::to_vector((*order)->placement.rankOfChunk);
  return layout;
}

FailureOr<double> search::playStep(ModuleOp module, const Layout &layout,
                                   const pipeline::Problem &problem) {
  if (layout.stages == 1) {
    const pipeline::ChunkCost &chunk = problem.costs.chunks.front();
    return layout.microBatches * (chunk.forward + chunk.backward);
  }
  DictionaryAttr decisions = getDecisions(module);
  StringRef name = getSchedule(decisions);
  auto order =
      findOrder(module, decisions, name, layout.stages, layout.microBatches);
  if (failed(order))
    return failure();
  if (!*order)
    return 0.0;
  return pipeline::evaluate(name.str(), std::move(**order), problem)
      .simulation.seconds;
}
