// Holds the split program against what phase `decided` wrote down.

#include "accel/Search/Passes.h"

#include "dialects/Dist/Dist.h"

using namespace mlir;

namespace accel::search {
#define GEN_PASS_DEF_VERIFYDECISIONSPASS
#include "accel/Search/Passes.h.inc"

namespace {
struct VerifyDecisionsPass
    : impl::VerifyDecisionsPassBase<VerifyDecisionsPass> {
  using Base::Base;

  void runOnOperation() override {
    auto decisions =
        getOperation()->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
    auto microBatches =
        decisions ? decisions.getAs<IntegerAttr>("micro_batches") : nullptr;
    auto slots = decisions ? decisions.getAs<IntegerAttr>("slots") : nullptr;
    if (!microBatches || !slots) {
      getOperation().emitError() << "expected '" << kDecisionsAttr
                                 << "' with micro_batches and slots, found "
                                 << (decisions ? "neither or one" : "none");
      return signalPassFailure();
    }
    getOperation().walk([&](Operation *op) {
      if (auto schedule = dyn_cast<dist::ScheduleOp>(op)) {
        if (int64_t(schedule.getMicroBatches()) != microBatches.getInt()) {
          schedule.emitOpError()
              << "expected the decided " << microBatches.getInt()
              << " micro-batches, found " << schedule.getMicroBatches();
          signalPassFailure();
        }
      } else if (auto run = dyn_cast<dist::RunOp>(op)) {
        for (int64_t slot : run.getSlots())
          if (slot >= slots.getInt()) {
            run.emitOpError() << "expected one of the decided "
                              << slots.getInt() << " slots, found " << slot;
            signalPassFailure();
          }
      }
    });
  }
};
} // namespace
} // namespace accel::search
