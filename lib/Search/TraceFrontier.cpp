// Tries budgets between the least and what nothing needs, and tells what each
// comes to.

#include "BudgetSearch.h"

#include "dialects/Accel/Accel.h"
#include "dialects/NN/Entry.h"
#include "lib/Cost/Frontier.h"

using namespace mlir;

namespace accel::search {
#define GEN_PASS_DEF_TRACEFRONTIERPASS
#include "lib/Search/Passes.h.inc"

namespace {
/// Budgets that are tried; and one that everything fits.
constexpr int64_t kBudgets = 10, kAnyBytes = INT64_MAX / 4;

struct TraceFrontierPass : impl::TraceFrontierPassBase<TraceFrontierPass> {
  using Base::Base;
  TraceFrontierPass(const TraceFrontierPassOptions &options, Trier trier)
      : Base(options), trier(std::move(trier)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    func::FuncOp step = nn::findEntry(module, nn::EntryKind::step);
    if (!cost::isAskedForFrontier(module) || !trier.buildPlan || !step)
      return;
    Attribute decided = module->getAttr(kDecisionsAttr);
    parallel::RecomputeChoices choices(step);
    BudgetSearch search(module, step, &choices, trier);
    if (failed(search.prepare(getOpen(), /*isTimed=*/true)))
      return signalPassFailure();
    auto points = trace(search, choices);
    module->setAttr(kDecisionsAttr, decided);
    if (succeeded(points)) // else whoever plans it says why
      cost::tellFrontier(module, *points);
  }

private:
  OpenDecisions getOpen() {
    return {gathersOpen, scheduleOpen, llvm::to_vector(*offloadsOpen),
            llvm::to_vector(*spaces)};
  }

  FailureOr<std::vector<cost::FrontierPoint>>
  trace(BudgetSearch &search, const parallel::RecomputeChoices &choices) {
    auto fewest = search.findLeastBytes();
    AlternativeSearch fastest = search.solve(kAnyBytes);
    if (failed(fewest) || !fastest.best ||
        failed(search.getCandidates()[*fastest.best].apply(getOperation())))
      return failure();
    auto whole = tryPlan(getOperation(), trier,
                         search.getSolution(*fastest.best).fit.policyOfLayer,
                         Extent::Whole);
    if (failed(whole))
      return failure();
    double least = *fastest.costs[*fastest.best];
    std::vector<cost::FrontierPoint> points;
    for (int64_t number = kBudgets - 1; number >= 0; --number) {
      AlternativeSearch found = search.solve(
          *fewest + (whole->getPeak() - *fewest) * number / (kBudgets - 1));
      if (!found.best)
        return failure();
      cost::FrontierPoint point = describe(search, choices, *found.best);
      point.time = least > 0 ? *found.costs[*found.best] / least : 1;
      // Layers are whole: a budget may change none.
      while (!points.empty() && point.bytes <= points.back().bytes &&
             point.time <= points.back().time)
        points.pop_back();
      if (points.empty() || point.bytes < points.back().bytes)
        points.push_back(std::move(point));
    }
    return points;
  }

  static cost::FrontierPoint describe(const BudgetSearch &search,
                                      const parallel::RecomputeChoices &choices,
                                      size_t number) {
    const Fit &fit = search.getSolution(number).fit;
    const PolicyTable &table = *search.getTable(number);
    double work = 0, more = 0;
    for (const pipeline::ChunkCost &chunk : search.getProblem()->costs.chunks)
      work += chunk.forward + chunk.backward;
    for (auto [layer, policy] :
         llvm::zip_equal(choices.getLayers(), fit.policyOfLayer))
      more += table.getWork(layer.kind, policy);
    return {fit.getPeak(), work > 0 ? more / work : 0, /*time=*/1,
            table.describe(choices, fit.policyOfLayer),
            search.getCandidates()[number].value};
  }

  Trier trier;
};
} // namespace

std::unique_ptr<Pass>
createTraceFrontierPass(const TraceFrontierPassOptions &options, Trier trier) {
  return std::make_unique<TraceFrontierPass>(options, std::move(trier));
}
} // namespace accel::search
