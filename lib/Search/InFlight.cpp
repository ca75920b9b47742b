// Counts by name, or through the order of the tasks.

#include "InFlight.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Dist/ScheduleKind.h"
#include "lib/Pipeline/NamedSchedules.h"
#include "lib/Tasks/DecidedOrder.h"

using namespace mlir;
using namespace accel;

static SmallVector<int64_t> count(const pipeline::Schedule &order) {
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
  auto decided = decisions.getAs<StringAttr>("schedule");
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
  return *order ? count(**order) : SmallVector<int64_t>(stages, stages);
}

FailureOr<SmallVector<int64_t>>
search::findStageOfChunk(ModuleOp module, DictionaryAttr decisions,
                         int64_t stages, int64_t microBatches) {
  if (stages == 1)
    return SmallVector<int64_t>{0};
  auto order = findOrder(module, decisions, getSchedule(decisions), stages,
                         microBatches);
  if (failed(order))
    return failure();
  if (*order)
    return llvm::to_vector((*order)->placement.rankOfChunk);
  return llvm::to_vector(llvm::seq<int64_t>(0, stages));
}
