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

FailureOr<SmallVector<int64_t>> search::countInFlight(ModuleOp module,
                                                      DictionaryAttr decisions,
                                                      int64_t stages,
                                                      int64_t microBatches) {
  auto decided = decisions.getAs<StringAttr>("schedule");
  StringRef name =
      decided ? decided.getValue() : StringRef(dist::ScheduleKind::kDefault);
  auto fail = [&](StringRef names) {
    return module.emitError() << "expected a schedule " << names << " in '"
                              << kDecisionsAttr << "', found '" << name << "'";
  };
  if (stages == 1) {
    auto kind = dist::ScheduleKind::parse(name);
    if (!kind)
      return fail(dist::ScheduleKind::getNames());
    return SmallVector<int64_t>{kind->getInFlight(microBatches)};
  }
  auto choice = pipeline::parseChoice(name);
  if (!choice) {
    llvm::consumeError(choice.takeError());
    return fail("of several stages");
  }
  if (!choice->named) {
    // Without a step there is no order: it has nothing in flight.
    if (!decisions.contains(tasks::kOrderKey))
      return SmallVector<int64_t>(stages, stages);
    auto order = tasks::readOrder(module, decisions, stages, microBatches);
    if (failed(order))
      return failure();
    return count(*order);
  }
  auto order = pipeline::generate(
      *choice->named, {stages, choice->chunksPerRank, microBatches});
  if (!order)
    return module.emitError() << llvm::toString(order.takeError());
  return count(*order);
}
