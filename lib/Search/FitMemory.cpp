// Chooses what is computed again to a budget of memory, and marks it.

#include "FitBudget.h"
#include "InFlight.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/Entry.h"
#include "lib/Cost/Decision.h"
#include "lib/Cost/Machine.h"
#include "lib/Names/Bytes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

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
    if (budget.empty())
      return;
    auto parsed = MemoryBudget::parse(budget);
    if (!parsed) {
      module.emitError() << llvm::toString(parsed.takeError());
      return signalPassFailure();
    }
    int64_t ranks = 1;
    if (dist::MeshOp mesh = dist::MeshOp::of(module)) {
      ranks = mesh.getRankCount();
      stages = mesh.findAxisSize(dist::MeshOp::kPipelineAxis).value_or(1);
      microBatches =
          mesh.findAxisSize(dist::MeshOp::kMicroBatchAxis).value_or(1);
    }
    int64_t bytes = parsed->resolve(getMachineMemory() / ranks);
    cost::setDecision(module, kMemoryBudgetKey,
                      Builder(&getContext()).getI64IntegerAttr(bytes));
    func::FuncOp step = nn::findEntry(module, nn::EntryKind::step);
    if (recompute != "auto" || !step)
      return;
    if (!trier.buildPlan) {
      module.emitError() << "expected the passes that split and plan the "
                            "program, with which what fits a budget is looked "
                            "for: compile with acc-opt --memory-budget";
      return signalPassFailure();
    }
    if (failed(choose(step, bytes)))
      signalPassFailure();
  }

  LogicalResult choose(func::FuncOp step, int64_t bytes) {
    ModuleOp module = getOperation();
    auto decisions = module->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
    auto stageOfChunk =
        findStageOfChunk(module, decisions, stages, microBatches);
    if (failed(stageOfChunk))
      return failure();
    parallel::RecomputeChoices choices(step);
    auto table = PolicyTable::measure(module, choices, *stageOfChunk, trier);
    if (failed(table))
      return success(); // whoever plans it says why
    auto fit = fitBudget(module, choices, *table, trier, bytes);
    if (failed(fit))
      return success();
    if (!fit->tooLarge.empty())
      return refuse(choices, *table, *fit, bytes);
    choices.mark(fit->policyOfLayer);
    for (size_t stage = 0; stage < fit->counts.size(); ++stage)
      tell(step, choices, *table, *fit, stage);
    return success();
  }

  /// With the least budget that the search finds something for.
  LogicalResult refuse(const parallel::RecomputeChoices &choices,
                       const PolicyTable &table, Fit fit, int64_t bytes) {
    ModuleOp module = getOperation();
    std::optional<Trial> smallest;
    while (true) {
      auto tried = tryPlan(module, trier, fit.policyOfLayer, Extent::Whole);
      if (failed(tried))
        return success();
      bool isSmaller = !smallest || tried->getPeak() < smallest->getPeak();
      if (!isSmaller)
        break;
      smallest = std::move(*tried);
      auto next =
          fitBudget(module, choices, table, trier, smallest->getPeak() - 1);
      if (failed(next) || !next->tooLarge.empty())
        break;
      fit = std::move(*next);
    }
    const Trial::Stage &most = smallest->getLargest();
    InFlightDiagnostic error =
        module.emitError() << "expected a memory budget of at least "
                           << formatBytes(most.getBytes()) << " for each rank"
                           << (stages > 1
                                   ? " of stage " + std::to_string(most.stage)
                                   : "")
                           << ", found " << formatBytes(bytes)
                           << " (--memory-budget)";
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

  /// "7 layers full, 5 layers none"
  static std::string describe(const parallel::RecomputeChoices &choices,
                              const StageTable &table,
                              const PolicyCounts &counts) {
    SmallVector<int64_t> layers(choices.getPolicies().size(), 0);
    for (auto [of, chosen] : llvm::zip_equal(table.classes, counts.layers))
      for (auto [choice, count] : llvm::zip_equal(of.choices, chosen))
        layers[choice.policy] += count;
    SmallVector<std::string> said;
    for (size_t policy = layers.size(); policy-- > 0;)
      if (layers[policy] > 0)
        said.push_back(llvm::formatv("{0} {1} {2}", layers[policy],
                                     layers[policy] == 1 ? "layer" : "layers",
                                     choices.getPolicies()[policy].name));
    return said.empty() ? "no layers" : llvm::join(said, ", ");
  }

  void tell(func::FuncOp step, const parallel::RecomputeChoices &choices,
            const PolicyTable &table, const Fit &fit, size_t stage) {
    const PolicyCounts &counts = fit.counts[stage];
    std::string what = describe(choices, table.getStages()[stage], counts);
    std::string of = stages > 1 ? "stage " + std::to_string(stage) : "step";
    double extra = cost::getSeconds(double(counts.work) * microBatches);
    double bound = fit.bounds[stage];
    std::string detail =
        double(counts.work) <= bound
            ? "no choice does less again"
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
    if (counts.work > 0)
      step.emitRemark() << (stages > 1 ? of + ": " : "")
                        << "computed again to fit the memory budget: " << what
                        << "; peak " << formatBytes(fit.bytes[stage])
                        << ", without it "
                        << formatBytes(table.getBytesOfNone(stage));
  }

  Trier trier;
  int64_t stages = 1, microBatches = 1;
};
} // namespace

std::unique_ptr<Pass> createFitMemoryPass(const FitMemoryPassOptions &options,
                                          PassBuilder buildSplit,
                                          PassBuilder buildPlan) {
  return std::make_unique<FitMemoryPass>(
      options, Trier{std::move(buildSplit), std::move(buildPlan)});
}
} // namespace accel::search
