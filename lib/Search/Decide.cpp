// Writes down how the program will be run: micro-batches, the schedule, and how
// many micro-batches are in flight. The later phases obey and check it.

#include "InFlight.h"
#include "Passes.h"
#include "ScheduleChoice.h"
#include "StateChoices.h"
#include "Trial.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Accel/Zero.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Dist/ScheduleKind.h"
#include "lib/Cost/Decision.h"
#include "lib/Names/Bytes.h"
#include "lib/Pipeline/NamedSchedules.h"
#include "lib/Tasks/DecidedOrder.h"

using namespace mlir;

namespace accel::search {
#define GEN_PASS_DEF_DECIDEPASS
#include "lib/Search/Passes.h.inc"

namespace {
struct DecidePass : impl::DecidePassBase<DecidePass> {
  using Base::Base;
  DecidePass(const DecidePassOptions &options, PassBuilder buildSplit)
      : Base(options), buildSplit(std::move(buildSplit)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<Phase> phase = getPhase(module);
    if (phase != Phase::Dist) {
      module.emitError() << "expected a module in phase 'dist' to decide on, "
                            "found "
                         << (phase ? stringifyPhase(*phase) : "none");
      return signalPassFailure();
    }
    int64_t microBatches = 1, stages = 1;
    if (dist::MeshOp mesh = dist::MeshOp::of(module)) {
      microBatches =
          mesh.findAxisSize(dist::MeshOp::kMicroBatchAxis).value_or(1);
      stages = mesh.findAxisSize(dist::MeshOp::kPipelineAxis).value_or(1);
    }
    if (failed(stages > 1 ? checkOfStages(stages, microBatches)
                          : checkOfOne(microBatches)))
      return signalPassFailure();
    // Only what is not the default: one micro-batch, in sequence.
    Builder builder(&getContext());
    auto set = [&](StringRef key, Attribute value) {
      cost::setDecision(module, key, value);
    };
    set("micro_batches", microBatches != 1
                             ? builder.getI64IntegerAttr(microBatches)
                             : Attribute());
    set(kGathersDecision,
        gatherOnce ? builder.getStringAttr(kGathersOnce) : Attribute());
    if (failed(writeBudgets()))
      return signalPassFailure();
    // With what the split is to obey beside the schedule.
    ScheduleChoice choice{schedule, stages, microBatches, {}};
    if (failed(chooseSchedule(module, buildSplit, choice)))
      return signalPassFailure();
    tellOfStates(module, microBatches);
    bool isDefault = choice.name == dist::ScheduleKind::kDefault;
    set(kScheduleKey,
        isDefault ? Attribute() : builder.getStringAttr(choice.name));
    set(tasks::kOrderKey,
        choice.order ? tasks::writeOrder(builder, *choice.order) : Attribute());
    auto inFlight = countInFlight(
        module, module->getAttrOfType<DictionaryAttr>(kDecisionsAttr), stages,
        microBatches);
    if (failed(inFlight))
      return signalPassFailure();
    set(kInFlightKey,
        isDefault ? Attribute() : builder.getDenseI64ArrayAttr(*inFlight));
  }

  /// What a rank may have, in bytes.
  LogicalResult writeBudgets() {
    ModuleOp module = getOperation();
    dist::MeshOp mesh = dist::MeshOp::of(module);
    int64_t ranks = mesh ? mesh.getRankCount() : 1;
    const std::pair<StringRef, StringRef> budgets[] = {
        {kMemoryBudgetKey, budget},
        {kHostBudgetKey, hostBudget},
        {kNvmeBudgetKey, nvmeBudget}};
    for (auto [key, text] : budgets) {
      if (text.empty())
        continue;
      auto parsed = MemoryBudget::parse(text);
      if (!parsed)
        return module.emitError() << llvm::toString(parsed.takeError());
      if (key == kNvmeBudgetKey && parsed->percent > 0)
        return module.emitError()
               << "expected the bytes that a rank may have of a file "
                  "(offload.nvme_budget), found '"
               << text << "'";
      cost::setDecision(
          module, key,
          Builder(&getContext())
              .getI64IntegerAttr(parsed->resolve(getMachineMemory() / ranks)));
    }
    return success();
  }

  /// The schedule of a program of one stage.
  LogicalResult checkOfOne(int64_t microBatches) {
    if (failed(checkSize({/*ranks=*/1, /*chunksPerRank=*/1, microBatches})))
      return failure();
    auto kind = dist::ScheduleKind::parse(schedule);
    if (!kind)
      return getOperation().emitError()
             << "expected schedule " << dist::ScheduleKind::getNames()
             << ", found '" << schedule << "'";
    if (kind->getInFlight(microBatches) > microBatches)
      return getOperation().emitError()
             << "schedule '" << schedule << "' has "
             << kind->getInFlight(microBatches)
             << " micro-batches in flight: expected at least as many, found "
             << microBatches << " (--micro-batches)";
    return success();
  }

  /// Of several.
  LogicalResult checkOfStages(int64_t stages, int64_t microBatches) {
    if (schedule == dist::ScheduleKind::kDefault)
      schedule = "1f1b";
    auto choice = pipeline::parseChoice(schedule);
    if (!choice)
      return getOperation().emitError() << llvm::toString(choice.takeError());
    return checkSize({stages, choice->chunksPerRank, microBatches});
  }

  LogicalResult checkSize(pipeline::Shape shape) {
    if (llvm::Error error = pipeline::checkShape(schedule, shape))
      return getOperation().emitError() << llvm::toString(std::move(error));
    return success();
  }

  PassBuilder buildSplit;
};
} // namespace

std::unique_ptr<Pass> createDecidePass(const DecidePassOptions &options,
                                       PassBuilder buildSplit) {
  return std::make_unique<DecidePass>(options, std::move(buildSplit));
}
} // namespace accel::search
