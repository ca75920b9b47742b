// Tries budgets between the least and what nothing needs, and tells what each
// comes to.

#include "FitBudget.h"
#include "InFlight.h"
#include "ScheduleChoice.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/Entry.h"
#include "lib/Cost/Frontier.h"
#include "mlir/IR/OwningOpRef.h"

using namespace mlir;

namespace accel::search {
#define GEN_PASS_DEF_TRACEFRONTIERPASS
#include "lib/Search/Passes.h.inc"

namespace {
/// Budgets that are tried.
constexpr int64_t kBudgets = 10;

struct TraceFrontierPass : impl::TraceFrontierPassBase<TraceFrontierPass> {
  using Base::Base;
  explicit TraceFrontierPass(Trier trier) : trier(std::move(trier)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    func::FuncOp step = nn::findEntry(module, nn::EntryKind::step);
    if (!cost::isAskedForFrontier(module) || !trier.buildPlan || !step)
      return;
    auto layout = Layout::of(module);
    if (failed(layout))
      return signalPassFailure();
    parallel::RecomputeChoices choices(step);
    auto table = PolicyTable::measure(module, choices, *layout, trier);
    // Nothing is computed again in what all else is compared with.
    OwningOpRef<ModuleOp> plain(module.clone());
    parallel::RecomputeChoices::clearMarks(
        nn::findEntry(*plain, nn::EntryKind::step));
    auto problem = measureTasks(*plain, trier.buildSplit, layout->stages,
                                layout->microBatches);
    auto none = tryPlan(*plain, trier, {}, Extent::Whole);
    if (failed(table) || failed(problem) || failed(none))
      return; // whoever plans it says why
    auto least = findLeast(module, choices, *table, trier);
    if (failed(least))
      return;
    int64_t most = none->getPeak(), fewest = least->trial.getPeak();
    std::vector<cost::FrontierPoint> points;
    for (int64_t number = kBudgets - 1; number >= 0; --number) {
      int64_t budget = fewest + (most - fewest) * number / (kBudgets - 1);
      auto fit = fitBudget(module, choices, *table, trier, budget);
      if (failed(fit))
        return;
      if (!fit->tooLarge.empty())
        fit = least->fit; // as search-fit-memory does
      auto point = describe(choices, *table, *layout, *problem, *fit);
      if (failed(point))
        return signalPassFailure();
      // Layers are whole: a budget may change none.
      while (!points.empty() && point->bytes <= points.back().bytes &&
             point->moreWork <= points.back().moreWork)
        points.pop_back();
      if (points.empty() || point->bytes < points.back().bytes)
        points.push_back(std::move(*point));
    }
    cost::tellFrontier(module, points);
  }

private:
  FailureOr<cost::FrontierPoint>
  describe(const parallel::RecomputeChoices &choices, const PolicyTable &table,
           const Layout &layout, const pipeline::Problem &problem,
           const Fit &fit) {
    pipeline::Problem longer = problem;
    double work = 0, more = 0;
    for (pipeline::ChunkCost &chunk : longer.costs.chunks)
      work += chunk.forward + chunk.backward;
    for (auto [layer, policy] :
         llvm::zip_equal(choices.getLayers(), fit.policyOfLayer)) {
      pipeline::ChunkCost &chunk = longer.costs.chunks[layer.chunk];
      double again = table.getWork(layer.kind, policy);
      more += again;
      chunk.backward += again;
      chunk.backwardInput += again;
      if (chunk.backwardToGradient)
        *chunk.backwardToGradient += again;
    }
    auto before = playStep(getOperation(), layout, problem);
    auto after = playStep(getOperation(), layout, longer);
    if (failed(before) || failed(after))
      return failure();
    return cost::FrontierPoint{fit.getPeak(), work > 0 ? more / work : 0,
                               *before > 0 ? *after / *before : 1,
                               table.describe(choices, fit.policyOfLayer)};
  }

  Trier trier;
};
} // namespace

std::unique_ptr<Pass> createTraceFrontierPass(Trier trier) {
  return std::make_unique<TraceFrontierPass>(std::move(trier));
}
} // namespace accel::search
