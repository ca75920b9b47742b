// Chooses what is computed again to a budget of memory, and marks it.

#include "Alternatives.h"
#include "FitBudget.h"
#include "InFlight.h"
#include "StateChoices.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Accel/Zero.h"
#include "dialects/NN/Entry.h"
#include "lib/Cost/Decision.h"
#include "lib/Cost/Machine.h"
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
    if (budget.empty() && hostBudget.empty() && nvmeBudget.empty())
      return;
    auto layout = Layout::of(module);
    if (failed(layout))
      return signalPassFailure();
    auto write = [&](StringRef key, StringRef text) -> FailureOr<int64_t> {
      auto parsed = MemoryBudget::parse(text);
      if (!parsed)
        return module.emitError() << llvm::toString(parsed.takeError());
      if (key == kNvmeBudgetKey && parsed->percent > 0)
        return module.emitError()
               << "expected the bytes that a rank may have of a file "
                  "(offload.nvme_budget), found '"
               << text << "'";
      int64_t bytes = parsed->resolve(getMachineMemory() / layout->ranks);
      cost::setDecision(module, key,
                        Builder(&getContext()).getI64IntegerAttr(bytes));
      return bytes;
    };
    if ((!hostBudget.empty() && failed(write(kHostBudgetKey, hostBudget))) ||
        (!nvmeBudget.empty() && failed(write(kNvmeBudgetKey, nvmeBudget))))
      return signalPassFailure();
    if (budget.empty())
      return;
    FailureOr<int64_t> bytes = write(kMemoryBudgetKey, budget);
    if (failed(bytes))
      return signalPassFailure();
    func::FuncOp step = nn::findEntry(module, nn::EntryKind::step);
    if (!step || (recompute != "auto" && !gathersOpen))
      return;
    if (!trier.buildPlan) {
      module.emitError() << "expected the passes that split and plan the "
                            "program, with which what fits a budget is looked "
                            "for: compile with acc-opt --memory-budget";
      return signalPassFailure();
    }
    if (failed(choose(step, *layout, *bytes)))
      signalPassFailure();
  }

  /// A setting of what is decided beside recomputation.
  struct Way {
    std::string value;
    Attribute gathers; ///< of `accel.decisions`
    double seconds;    ///< that it takes whatever is computed again
  };
  /// What fits of a way.
  struct Solved {
    std::optional<PolicyTable> table; ///< where recomputation is open
    Fit fit;
  };

  SmallVector<Way> listWays(func::FuncOp step, const Layout &layout) {
    auto decisions =
        getOperation()->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
    std::optional<GatherSeconds> gathers;
    if (gathersOpen)
      gathers = weighGathers(step, layout.microBatches);
    if (!gathers)
      return {{"", decisions.get(kGathersDecision), 0}};
    // Of equals the one that has less.
    return {{"by unit", {}, gathers->byUnit},
            {kGathersOnce.str(), StringAttr::get(&getContext(), kGathersOnce),
             gathers->once}};
  }

  LogicalResult choose(func::FuncOp step, const Layout &layout, int64_t bytes) {
    ModuleOp module = getOperation();
    parallel::RecomputeChoices choices(step);
    SmallVector<Way> ways = listWays(step, layout);
    if (recompute != "auto" && ways.size() == 1)
      return success();
    std::vector<std::optional<Solved>> solved(ways.size());
    std::vector<std::optional<Trial::Stage>> least(ways.size());
    auto solve = [&](size_t number) -> std::optional<double> {
      cost::setDecision(module, kGathersDecision, ways[number].gathers);
      auto found = recompute == "auto"
                       ? fitWay(choices, layout, bytes, least[number])
                       : holdWay(bytes, least[number]);
      if (failed(found))
        return std::nullopt;
      solved[number] = std::move(*found);
      return ways[number].seconds + getSeconds(*solved[number], layout);
    };
    AlternativeSearch search = searchAlternatives(
        llvm::map_to_vector(ways, [](const Way &way) { return way.seconds; }),
        solve);
    if (!search.best) {
      // As the step would be without a budget.
      cost::setDecision(module, kGathersDecision, ways.front().gathers);
      const Trial::Stage *fewest = nullptr;
      for (const auto &each : least)
        if (each && (!fewest || each->getBytes() < fewest->getBytes()))
          fewest = &*each;
      // Whoever plans it says why it cannot be; what --recompute says and does
      // not fit, search-verify-memory refuses.
      return fewest && recompute == "auto" ? refuse(*fewest, layout, bytes)
                                           : success();
    }
    const Way &way = ways[*search.best];
    const Solved &best = *solved[*search.best];
    cost::setDecision(module, kGathersDecision, way.gathers);
    if (best.table)
      choices.mark(best.fit.policyOfLayer);
    if (ways.size() > 1)
      tellOfWays(step, layout, ways, search, solved, least);
    if (best.table)
      for (size_t stage = 0; stage < best.fit.counts.size(); ++stage)
        tell(step, choices, *best.table, layout, best.fit, stage);
    return success();
  }

  /// The least work that fits, as the module is decided; else fails, with the
  /// least that something has. Fails without that where nobody can plan it.
  FailureOr<Solved> fitWay(const parallel::RecomputeChoices &choices,
                           const Layout &layout, int64_t bytes,
                           std::optional<Trial::Stage> &fewest) {
    ModuleOp module = getOperation();
    auto table = PolicyTable::measure(module, choices, layout, trier, bytes);
    if (failed(table))
      return failure();
    auto fit = fitBudget(module, choices, *table, trier, bytes);
    if (failed(fit))
      return failure();
    if (!fit->tooLarge.empty()) {
      auto least = findLeast(module, choices, *table, trier);
      if (failed(least))
        return failure();
      // It is not far from any budget that it fits.
      if (least->trial.getPeak() > bytes) {
        fewest = least->trial.getLargest();
        return failure();
      }
      fit = std::move(least->fit);
    }
    return Solved{std::move(*table), std::move(*fit)};
  }

  /// The same where recomputation is not open: with the marks that there are.
  FailureOr<Solved> holdWay(int64_t bytes,
                            std::optional<Trial::Stage> &fewest) {
    auto trial = tryPlan(getOperation(), trier, {}, Extent::Whole);
    if (failed(trial))
      return failure();
    if (trial->getPeak() > bytes) {
      fewest = trial->getLargest();
      return failure();
    }
    Solved solved;
    for (const Trial::Stage &stage : trial->stages)
      solved.fit.bytes.push_back(stage.getBytes());
    return solved;
  }

  /// Of what is computed again, of all stages as the gathers are.
  static double getSeconds(const Solved &solved, const Layout &layout) {
    double seconds = 0;
    if (solved.table)
      for (const PolicyCounts &counts : solved.fit.counts)
        seconds += cost::getSeconds(solved.table->getWork(counts) *
                                    double(layout.microBatches));
    return seconds;
  }

  void tellOfWays(func::FuncOp step, const Layout &layout, ArrayRef<Way> ways,
                  const AlternativeSearch &search,
                  ArrayRef<std::optional<Solved>> solved,
                  ArrayRef<std::optional<Trial::Stage>> least) {
    StringRef reason = "the least time that fits --memory-budget";
    tellOfGathersAgain(getOperation(), layout.microBatches, reason);
    cost::Decision decision{"gathers in budget", "step", {}, {}, reason.str()};
    for (auto [number, way] : llvm::enumerate(ways)) {
      cost::Alternative told{way.value, search.costs[number], {}, ""};
      if (solved[number]) {
        told.bytes = solved[number]->fit.getPeak();
        told.detail = llvm::formatv("{0:f1} us of them computed again",
                                    1e6 * getSeconds(*solved[number], layout));
      } else if (least[number]) {
        told.bytes = least[number]->getBytes();
        told.detail = "nothing fits: the least that it has";
      } else if (!search.isSolved[number]) {
        told.seconds = way.seconds;
        told.detail = "not faster, whatever is computed again";
      } else {
        told.detail = "cannot be planned";
      }
      (number == *search.best ? decision.chosen
                              : decision.others.emplace_back()) = told;
    }
    cost::tell(getOperation(), decision);
    if (ways[*search.best].gathers)
      step.emitRemark() << "sharded weights are gathered once a step, which "
                           "fits the memory budget (zero.gather_once=auto)";
  }

  /// With the least that fits, of the stage that has most.
  LogicalResult refuse(const Trial::Stage &most, const Layout &layout,
                       int64_t bytes) {
    InFlightDiagnostic error =
        getOperation().emitError()
        << "expected a memory budget of at least "
        << formatBytes(most.getBytes()) << " for each rank"
        << (layout.stages > 1 ? " of stage " + std::to_string(most.stage) : "")
        << ", found " << formatBytes(bytes) << " (--memory-budget)";
    Diagnostic &note = error.attachNote();
    note << "with all that can be computed again, its peak has ";
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
