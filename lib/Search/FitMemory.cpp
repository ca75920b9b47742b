// Chooses what is computed again to a budget of memory, and marks it.

#include "FitBudget.h"
#include "InFlight.h"

#include "dialects/Accel/Accel.h"
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
    if (recompute != "auto" || !step)
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

  LogicalResult choose(func::FuncOp step, const Layout &layout, int64_t bytes) {
    ModuleOp module = getOperation();
    parallel::RecomputeChoices choices(step);
    auto table = PolicyTable::measure(module, choices, layout, trier, bytes);
    if (failed(table))
      return success(); // whoever plans it says why
    auto fit = fitBudget(module, choices, *table, trier, bytes);
    if (failed(fit))
      return success();
    if (!fit->tooLarge.empty()) {
      auto least = findLeast(module, choices, *table, trier);
      if (failed(least))
        return success();
      // It is not far from any budget that it fits.
      if (least->trial.getPeak() > bytes)
        return refuse(least->trial.getLargest(), layout, bytes);
      fit = std::move(least->fit);
    }
    choices.mark(fit->policyOfLayer);
    for (size_t stage = 0; stage < fit->counts.size(); ++stage)
      tell(step, choices, *table, layout, *fit, stage);
    return success();
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
