// Tells what a trial shows of the decided program's arenas.

#include "Trial.h"

using namespace mlir;

namespace accel::search {
#define GEN_PASS_DEF_PREDICTMEMORYPASS
#include "lib/Search/Passes.h.inc"

namespace {
struct PredictMemoryPass : impl::PredictMemoryPassBase<PredictMemoryPass> {
  using Base::Base;
  explicit PredictMemoryPass(Trier trier) : trier(std::move(trier)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!cost::isAskedForPrediction(module) || !trier.buildPlan)
      return;
    std::vector<cost::PredictedArena> arenas;
    if (auto trial = tryPlan(module, trier, {}, Extent::Shortened);
        succeeded(trial))
      for (const Trial::Stage &stage : trial->stages)
        llvm::append_range(arenas, stage.arenas);
    cost::tellPrediction(module, arenas);
  }

  Trier trier;
};
} // namespace

std::unique_ptr<Pass> createPredictMemoryPass(Trier trier) {
  return std::make_unique<PredictMemoryPass>(std::move(trier));
}
} // namespace accel::search
