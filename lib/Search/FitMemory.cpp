// Chooses what is computed again to a budget of memory, and what is open beside
// it, and writes it down.

#include "BudgetSearch.h"
#include "ScheduleChoice.h"
#include "StateChoices.h"

#include "dialects/Accel/Zero.h"
#include "dialects/NN/Entry.h"
#include "lib/Cost/Decision.h"
#include "lib/Cost/Machine.h"
#include "lib/Cost/OffloadDecisions.h"
#include "lib/Names/Bytes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace accel::search {
#define GEN_PASS_DEF_FITMEMORYPASS
#include "lib/Search/Passes.h.inc"

namespace {
struct FitMemoryPass : impl::FitMemoryPassBase<FitMemoryPass> {
  using Base::Base;
  FitMemoryPass(const FitMemoryPassOptions &options, Trier trier)
      : Base(options), trier(std::move(trier)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto decisions = module->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
    auto budget = decisions ? decisions.getAs<IntegerAttr>(kMemoryBudgetKey)
                            : IntegerAttr();
    if (!budget)
      return;
    func::FuncOp step = nn::findEntry(module, nn::EntryKind::step);
    auto open = getOpen();
    if (!step || (recompute != "auto" && !open.any()))
      return;
    if (!trier.buildPlan) {
      module.emitError() << "expected the passes that split and plan the "
                            "program, with which what fits a budget is looked "
                            "for: compile with acc-opt --memory-budget";
      return signalPassFailure();
    }
    if (failed(choose(step, open, budget.getInt())))
      signalPassFailure();
  }

  OpenDecisions getOpen() {
    return {gathersOpen, scheduleOpen, llvm::to_vector(*offloadsOpen),
            llvm::to_vector(*spaces)};
  }

  LogicalResult choose(func::FuncOp step, const OpenDecisions &open,
                       int64_t bytes) {
    ModuleOp module = getOperation();
    std::optional<parallel::RecomputeChoices> choices;
    if (recompute == "auto")
      choices.emplace(step);
    Attribute before = module->getAttr(kDecisionsAttr);
    BudgetSearch search(module, step, choices ? &*choices : nullptr, trier);
    if (failed(search.prepare(open)))
      return failure();
    ArrayRef<Candidate> candidates = search.getCandidates();
    if (!choices && candidates.size() == 1)
      return success();
    AlternativeSearch found = search.solve(bytes, /*isOnly=*/true);
    if (!found.best) {
      // As the step would be without a budget.
      module->setAttr(kDecisionsAttr, before);
      return refuse(search, bytes, /*isRecomputeOpen=*/choices.has_value());
    }
    const Candidate &best = candidates[*found.best];
    const Fit &fit = search.getSolution(*found.best).fit;
    const Layout &layout = search.getLayout(*found.best);
    if (failed(best.apply(module)))
      return failure();
    if (choices)
      choices->mark(fit.policyOfLayer);
    if (candidates.size() > 1)
      tellOfCandidates(step, search, found);
    if (choices)
      for (size_t stage = 0; stage < fit.counts.size(); ++stage)
        tell(step, *choices, *search.getTable(*found.best), layout, fit, stage);
    return success();
  }

  /// Where one was chosen of several.
  void tellOfCandidates(func::FuncOp step, const BudgetSearch &search,
                        const AlternativeSearch &found) {
    ModuleOp module = getOperation();
    StringRef reason = "the least time that fits --memory-budget";
    const Candidate &best = search.getCandidates()[*found.best];
    cost::Decision decision{"memory budget", "step", {}, {}, reason.str()};
    for (auto [number, candidate] : llvm::enumerate(search.getCandidates()))
      (number == *found.best ? decision.chosen
                             : decision.others.emplace_back()) =
          describe(search, found, number);
    if (best.decides(kGathersDecision))
      tellOfGathersAgain(module, search.getLayout(*found.best).microBatches,
                         reason);
    if (best.schedule)
      tellOfScheduleAgain(module, *best.schedule, *search.getProblem(), reason);
    cost::tell(module, decision);
    if (StringRef gathers = best.get(kGathersDecision); gathers == kGathersOnce)
      step.emitRemark() << "sharded weights are gathered once a step, which "
                           "fits the memory budget (zero.gather_once=auto)";
    if (best.schedule)
      step.emitRemark() << "schedule auto with the memory budget is "
                        << (best.schedule->name == "auto" ? "one without a name"
                                                          : best.schedule->name)
                        << ", the least time that fits";
    for (StringRef key : kOffloadDecisions)
      if (StringRef space = best.get(key); !space.empty())
        step.emitRemark() << describeOffload(key, space)
                          << ", to fit the memory budget";
  }

  static cost::Alternative describe(const BudgetSearch &search,
                                    const AlternativeSearch &found,
                                    size_t number) {
    const Candidate &candidate = search.getCandidates()[number];
    cost::Alternative told{candidate.value, found.costs[number], {}, ""};
    if (told.value.empty())
      told.value = "all on the device";
    if (found.costs[number]) {
      const Solution &solution = search.getSolution(number);
      told.bytes = solution.fit.getPeak();
      told.detail = llvm::formatv("{0:f1} us of them computed again",
                                  1e6 * solution.secondsAgain);
      if (candidate.copies())
        told.detail += llvm::formatv(", {0:f1} us for copies",
                                     1e6 * solution.secondsOfCopies);
    } else if (search.isTooLargeElsewhere(number)) {
      told.detail = "more than offload.host_budget or offload.nvme_budget";
    } else if (const Trial::Stage *least = search.getLeast(number)) {
      told.bytes = least->getBytes();
      told.detail = "nothing fits: the least that it has";
    } else if (!found.isSolved[number]) {
      told.seconds = candidate.seconds;
      told.detail = "not faster, whatever is computed again";
    } else {
      told.detail = "cannot be planned";
    }
    return told;
  }

  /// With the way out that is nearest.
  LogicalResult refuse(const BudgetSearch &search, int64_t bytes,
                       bool isRecomputeOpen) {
    ArrayRef<Candidate> candidates = search.getCandidates();
    std::optional<size_t> fewest;
    for (size_t number = 0; number < candidates.size(); ++number) {
      if (search.isTooLargeElsewhere(number))
        return getOperation().emitError()
               << "expected offload.host_budget, or offload.nvme_budget, with "
                  "room for what fits the memory budget ("
               << candidates[number].value
               << "), found less: leave it out, or say more";
      if (auto *least = search.getLeast(number);
          least &&
          (!fewest || least->getBytes() < search.getLeast(*fewest)->getBytes()))
        fewest = number;
    }
    if (!fewest)
      return success(); // whoever plans it says why it cannot be
    if (isRecomputeOpen)
      return refuse(candidates[*fewest], *search.getLeast(*fewest),
                    search.getLayout(*fewest), bytes);
    // What --recompute says, and does not fit, search-verify-memory refuses,
    // with the least.
    return candidates[*fewest].apply(getOperation());
  }

  /// With the least that fits, of the stage that has most.
  LogicalResult refuse(const Candidate &candidate, const Trial::Stage &most,
                       const Layout &layout, int64_t bytes) {
    InFlightDiagnostic error =
        getOperation().emitError()
        << "expected a memory budget of at least "
        << formatBytes(most.getBytes()) << " for each rank"
        << (layout.stages > 1 ? " of stage " + std::to_string(most.stage) : "")
        << ", found " << formatBytes(bytes) << " (--memory-budget)";
    Diagnostic &note = error.attachNote();
    note << "with all that can be computed again"
         << (candidate.value.empty() ? "" : ", " + candidate.value)
         << ", its peak has ";
    llvm::interleaveComma(
        ArrayRef(most.roles).take_front(4), note, [&](const auto &role) {
          note << formatBytes(role.second) << " of " << role.first;
        });
    note << ": more ranks that share states (zero_stage), smaller "
            "micro-batches (--micro-batches) or a pipeline take less of each";
    return error;
  }

  void tell(func::FuncOp step, const parallel::RecomputeChoices &choices,
            const PolicyTable &table, const Layout &layout, const Fit &fit,
            size_t stage) {
    const PolicyCounts &counts = fit.counts[stage];
    std::string what = table.describe(choices, fit.policyOfLayer, stage);
    std::string of =
        layout.stages > 1 ? "stage " + std::to_string(stage) : "step";
    double extra =
        cost::getSeconds(table.getWork(counts) * double(layout.microBatches));
    double bound = fit.bounds[stage];
    std::string detail =
        double(counts.work) <= bound
            ? "by the table no choice does less again"
            : llvm::formatv("the least of whole layers; of parts of layers "
                            "none does less than {0:f1} % of it",
                            100 * bound / double(counts.work))
                  .str();
    cost::tell(getOperation(),
               {"recompute",
                of,
                {what, extra, fit.bytes[stage], detail},
                {{"none", 0.0, table.getBytesOfNone(stage), ""}},
                "the least work that fits --memory-budget"});
    bool isAny = false; // also what takes next to no work
    for (auto [of, chosen] :
         llvm::zip_equal(table.getStages()[stage].classes, counts.layers))
      for (auto [choice, layers] : llvm::zip_equal(of.choices, chosen))
        isAny |= choice.policy != 0 && layers > 0;
    if (isAny)
      step.emitRemark() << (layout.stages > 1 ? of + ": " : "")
                        << "computed again to fit the memory budget: " << what
                        << "; peak " << formatBytes(fit.bytes[stage])
                        << ", without it "
                        << formatBytes(table.getBytesOfNone(stage));
  }

  Trier trier;
};
} // namespace

std::unique_ptr<Pass> createFitMemoryPass(const FitMemoryPassOptions &options,
                                          Trier trier) {
  return std::make_unique<FitMemoryPass>(options, std::move(trier));
}
} // namespace accel::search
