// Writes down how the program will be run: micro-batches, schedule,
// recomputation, offload. The later phases obey and check it.

#include "Passes.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Dist/ScheduleKind.h"

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
    auto kind = dist::ScheduleKind::parse(schedule);
    if (!kind) {
      module.emitError() << "expected schedule "
                         << dist::ScheduleKind::getNames() << ", found '"
                         << schedule << "'";
      return signalPassFailure();
    }
    if (kind->getInFlight(microBatches) > microBatches) {
      module.emitError() << "schedule '" << schedule << "' has "
                         << kind->getInFlight(microBatches)
                         << " micro-batches in flight: expected at least as "
                            "many, found "
                         << microBatches << " (--micro-batches)";
      return signalPassFailure();
    }
    Builder builder(&getContext());
    // Only what is not the default: one micro-batch, in sequence.
    NamedAttrList decisions;
    if (microBatches != 1)
      decisions.set("micro_batches", builder.getI64IntegerAttr(microBatches));
    if (schedule != dist::ScheduleKind::kDefault)
      decisions.set("schedule", builder.getStringAttr(schedule));
    module->setAttr(kDecisionsAttr, decisions.getDictionary(&getContext()));
  }
};
} // namespace
} // namespace accel::search
