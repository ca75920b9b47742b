// The story of a compilation: which passes lead from each phase to the next,
// and why they stand in this order.

#include "CutOptions.h"
#include "FixedBatch.h"
#include "Phases.h"
#include "lib/Cost/OffloadDecisions.h"
#include "lib/Search/Candidates.h"
#include "lib/Tasks/Passes.h"
#include "lib/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace accel;
using namespace accel::driver;

/// torchao's layers are all but the first and the last, unless it is said.
static precision::TagProductsPassOptions
getTagOptions(const PhaseOptions &options) {
  precision::TagProductsPassOptions tag = options.fp8.tag;
  tag.keepsOuter = options.fp8.skipsOuter.value_or(
      llvm::is_contained({"tensorwise", "rowwise", "rowwise_with_gw_hp"},
                         StringRef(options.fp8.quantize.recipe)));
  return tag;
}

/// Current scales are those of a micro-batch of a rank, unless it is said.
static precision::QuantizeProductsPassOptions
getQuantizeOptions(const PhaseOptions &options) {
  precision::QuantizeProductsPassOptions quantize = options.fp8.quantize;
  if (quantize.blocks == 0)
    quantize.blocks =
        quantize.recipe == "delayed" || quantize.recipe == "rowwise_with_gw_hp"
            ? 1
            : countBatchParts(options).value_or(1);
  // What is sent is of a rank.
  if (quantize.gradientParts == 0)
    quantize.gradientParts =
        options.fp8.isMsAmp()
            ? countBatchRanks(options.place.annotate.mesh).value_or(1)
            : 1;
  return quantize;
}

/// Whose statistics batch norms take, as parts of the batch. Running ones are
/// updated once for each micro-batch, as in PyTorch, or part that is asked
/// for.
static void setBatchNormScope(autodiff::BuildStepPassOptions &step,
                              const PhaseOptions &options) {
  if (options.batchNormParts > 0) {
    step.batchNormParts = step.batchNormUpdates = options.batchNormParts;
    return;
  }
  int64_t microBatches = options.place.annotate.microBatches;
  step.batchNormUpdates = options.batchNormScope == "batch" ? 1 : microBatches;
  step.batchNormParts = options.batchNormScope == "rank"
                            ? countBatchParts(options).value_or(microBatches)
                            : step.batchNormUpdates;
}

/// What a budget decides beside recomputation: whatever is `auto`.
static search::OpenDecisions listOpen(const PhaseOptions &options) {
  search::OpenDecisions open;
  open.gathers = options.fitMemory.gathersOpen;
  open.schedule = options.decide.schedule == "auto";
  for (auto [key, where] :
       {std::pair(kOffloadOptimizer, &options.plan.offloaded.optimizer),
        std::pair(kOffloadParameters, &options.plan.offloaded.parameters),
        std::pair(kOffloadActivations, &options.plan.activations.space)})
    if (*where == "auto")
      open.offloads.push_back(key.str());
  open.spaces.push_back("host");
  if (!options.plan.allocate.storagePath.empty())
    open.spaces.push_back("nvme");
  return open;
}

void accel::driver::buildPhase(Phase phase, OpPassManager &pm,
                               const PhaseOptions &options) {
  switch (phase) {
  case Phase::NN:
    // What exporters took apart is put together again while the pieces still
    // stand next to each other.
    transforms::buildImportPipeline(pm);
    return;
  case Phase::Train: {
    // A program may be given as text of phase `nn`, which nobody has
    // simplified.
    pm.addNestedPass<func::FuncOp>(transforms::createFoldEmptyPass());
    // Before differentiation, so that the backward inherits it.
    if (!options.train.mixedPrecision.empty()) {
      std::string type =
          options.train.mixedPrecision == "fp16" ? "f16" : "bf16";
      if (options.autocast.lists == "none") {
        precision::NarrowProductsPassOptions narrow;
        narrow.type = type;
        pm.addNestedPass<func::FuncOp>(
            precision::createNarrowProductsPass(narrow));
      } else {
        precision::AutocastPassOptions autocast = options.autocast;
        autocast.type = type;
        pm.addPass(precision::createAutocastPass(autocast));
      }
      pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
    }
    // The backward is cut where the forward is.
    stages::CutForwardPassOptions cut = getCutOptions(options);
    if (cut.chunks > 1 || !cut.cuts.empty())
      pm.addPass(stages::createCutForwardPass(cut));
    // A forward program stays as it is. What is sent is said here
    // already: the proof holds one rank's program against this phase.
    autodiff::TrainOptions train = options.train;
    setBatchNormScope(train.step, options);
    train.factors = options.wire.hook == "power_sgd";
    // Which products are of which layer is known before it, and which kind
    // each of the backward is, after it.
    if (options.train.mixedPrecision == "fp8") {
      train.step.fp8Moments = options.fp8.quantize.recipe == "msamp_o2";
      train.tagProducts = [tag =
                               getTagOptions(options)](OpPassManager &nested) {
        nested.addPass(precision::createTagProductsPass(tag));
      };
      train.quantizeProducts =
          [quantize = getQuantizeOptions(options)](OpPassManager &nested) {
            nested.addPass(precision::createQuantizeProductsPass(quantize));
          };
    }
    if (options.measuresRounding)
      train.measureRounding = [](OpPassManager &nested) {
        nested.addPass(precision::createMeasureRoundingPass());
      };
    autodiff::buildTrainPipeline(pm, train);
    if (cut.chunks > 1)
      pm.addPass(stages::createCutStepPass());
    if (options.wire.hook != "no" && !train.factors)
      pm.addPass(precision::createDeclareWirePass(options.wire));
    return;
  }
  case Phase::Dist: {
    // What is proved of one rank's program is held against this one.
    pm.addPass(equivalence::createKeepProgramPass(options.logical));
    parallel::PlaceOptions place = options.place;
    if (options.padded)
      place.keepPadded = [&] {
        return equivalence::createKeepPaddedPass(options.padded);
      };
    return parallel::buildPlacePipeline(pm, place);
  }
  case Phase::Decided: {
    // Chosen after placement, when sizes and communication are known, and
    // before the split, which obeys.
    pm.addPass(equivalence::createKeepProgramPass(options.logical));
    // To a budget it is chosen when all else is known.
    bool isChosen =
        options.recompute.policy == "auto" && !options.decide.budget.empty();
    if (options.recompute.policy != "none" && !isChosen)
      pm.addPass(parallel::createMarkRecomputedPass(options.recompute));
    if (options.lossChunks.chunks != "none")
      pm.addPass(parallel::createMarkLossChunksPass(options.lossChunks));
    search::Trier trier{
        [](OpPassManager &trial) {
          parallel::buildSplitPipeline(trial, /*isVerified=*/false);
        },
        [](OpPassManager &trial) {
          trial.addPass(tasks::createSplitTasksPass());
          trial.addPass(tasks::createMergeScatterAddsPass());
        },
        [plan = options.plan](OpPassManager &trial, ArrayRef<int64_t> stages) {
          plan::buildTrialPipeline(trial, plan, stages);
        }};
    pm.addPass(search::createDecidePass(options.decide, trier.buildSplit));
    search::OpenDecisions open = listOpen(options);
    search::TraceFrontierPassOptions trace;
    open.write(trace);
    pm.addPass(search::createTraceFrontierPass(trace, trier));
    search::FitMemoryPassOptions fit = options.fitMemory;
    fit.recompute = options.recompute.policy;
    open.write(fit);
    pm.addPass(search::createFitMemoryPass(fit, trier));
    // Of all that is decided now.
    pm.addPass(search::createPredictMemoryPass(std::move(trier)));
    return;
  }
  case Phase::Local: {
    pm.addPass(equivalence::createKeepProgramPass(options.logical));
    parallel::buildSplitPipeline(pm);
    // On local shapes, where it shows what differs between micro-batches.
    pm.addPass(tasks::createSplitTasksPass());
    // Where terms are a rank's own, and accumulators stand.
    pm.addPass(tasks::createMergeScatterAddsPass());
    pm.addPass(parallel::createVerifyLocalPass());
    // Whoever split it, it must compute what the whole program computes.
    pm.addPass(equivalence::createVerifyEquivalencePass(options.logical,
                                                        options.padded));
    // The split obeys what was decided; this one looks.
    pm.addPass(search::createVerifyDecisionsPass());
    return;
  }
  case Phase::Plan: {
    auto local = equivalence::makeKeptProgram();
    pm.addPass(equivalence::createKeepProgramPass(local));
    plan::buildPlanPipeline(pm, options.plan);
    pm.addPass(search::createVerifyMemoryPass());
    // However it was fused, shared and moved, its bytes must hold what the
    // tasks compute.
    pm.addPass(equivalence::createVerifyPlanEquivalencePass(local));
    return;
  }
  }
}
