// Writes down how the program will be run: micro-batches, schedule, slots,
// recomputation, offload. The later phases obey and check it.

#include "accel/Search/Passes.h"

#include "dialects/Dist/Dist.h"

using namespace mlir;

namespace accel::search {
#define GEN_PASS_DEF_DECIDEPASS
#include "accel/Search/Passes.h.inc"

namespace {
struct DecidePass : impl::DecidePassBase<DecidePass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto phase = module->getAttrOfType<StringAttr>("accel.phase");
    if (!phase || phase.getValue() != "dist") {
      module.emitError() << "expected a module in phase 'dist' to decide on, "
                            "found "
                         << (phase ? phase.getValue() : "none");
      return signalPassFailure();
    }
    int64_t microBatches = 1;
    for (auto mesh : module.getOps<dist::MeshOp>())
      microBatches =
          mesh.findAxisSize(dist::MeshOp::kMicroBatchAxis).value_or(1);
    Builder builder(&getContext());
    module->setAttr(
        kDecisionsAttr,
        builder.getDictionaryAttr({
            builder.getNamedAttr("micro_batches",
                                 builder.getI64IntegerAttr(microBatches)),
            builder.getNamedAttr("offload", builder.getArrayAttr({})),
            builder.getNamedAttr("recompute", builder.getArrayAttr({})),
            builder.getNamedAttr("schedule",
                                 builder.getStringAttr("sequential")),
            builder.getNamedAttr("slots", builder.getI64IntegerAttr(1)),
        }));
  }
};
} // namespace
} // namespace accel::search
