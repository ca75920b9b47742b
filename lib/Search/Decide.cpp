// Writes down how the program will be run: micro-batches, schedule,
// recomputation, offload. The later phases obey and check it.

#include "Passes.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Accel/Zero.h"
#include "dialects/Dist/ScheduleKind.h"
#include "lib/Pipeline/NamedSchedules.h"

using namespace mlir;

namespace accel::search {
#define GEN_PASS_DEF_DECIDEPASS
#include "lib/Search/Passes.h.inc"

namespace {
struct DecidePass : impl::DecidePassBase<DecidePass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<Phase> phase = getPhase(module);
    if (phase != Phase::Dist) {
      module.emitError() << "expected a module in phase 'dist' to decide on, "
                            "found "
                         << (phase ? stringifyPhase(*phase) : "none");
      return signalPassFailure();
    }
    int64_t microBatches = 1;
    if (dist::MeshOp mesh = dist::MeshOp::of(module))
      microBatches =
          mesh.findAxisSize(dist::MeshOp::kMicroBatchAxis).value_or(1);
    int64_t stages = 1;
    if (dist::MeshOp mesh = dist::MeshOp::of(module))
      stages = mesh.findAxisSize(dist::MeshOp::kPipelineAxis).value_or(1);
    if (failed(stages > 1 ? checkOfStages(stages, microBatches)
                          : checkOfOne(microBatches)))
      return signalPassFailure();
    Builder builder(&getContext());
    // Only what is not the default: one micro-batch, in sequence.
    NamedAttrList decisions;
    if (microBatches != 1)
      decisions.set("micro_batches", builder.getI64IntegerAttr(microBatches));
    if (schedule != dist::ScheduleKind::kDefault)
      decisions.set("schedule", builder.getStringAttr(schedule));
    if (gatherOnce)
      decisions.set(kGathersDecision, builder.getStringAttr(kGathersOnce));
    module->setAttr(kDecisionsAttr, decisions.getDictionary(&getContext()));
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
};
} // namespace
} // namespace accel::search
