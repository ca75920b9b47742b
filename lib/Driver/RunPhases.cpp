// Runs the pipelines of all phases between the one a module has reached and the
// one asked for.

#include "Passes.h"
#include "Phases.h"

using namespace mlir;

namespace accel::driver {
#define GEN_PASS_DEF_RUNPHASESPASS
#include "lib/Driver/Passes.h.inc"

namespace {
struct RunPhasesPass : impl::RunPhasesPassBase<RunPhasesPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    OpPassManager all(ModuleOp::getOperationName());
    for (int phase = 0; phase <= static_cast<int>(Phase::Plan); ++phase)
      buildPhase(static_cast<Phase>(phase), all, phaseOptions());
    all.getDependentDialects(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<Phase> last = symbolizePhase(to);
    if (!last) {
      module.emitError() << "expected a phase to compile to (nn, train, dist, "
                            "decided, local or plan), found '"
                         << to << "'";
      return signalPassFailure();
    }
    FailureOr<std::optional<Phase>> reached = getPhase(module);
    if (failed(reached))
      return signalPassFailure();
    if (!*reached) {
      module.emitError() << "expected a module that says which phase it has "
                            "reached, found no '"
                         << kPhaseAttr << "'";
      return signalPassFailure();
    }
    if (**reached > *last) {
      module.emitError() << "cannot compile to phase '" << to
                         << "': the module is past it, in phase '"
                         << stringifyPhase(**reached) << "'";
      return signalPassFailure();
    }
    PhaseOptions options = phaseOptions();
    options.logical = equivalence::makeKeptProgram();
    for (int phase = static_cast<int>(**reached) + 1;
         phase <= static_cast<int>(*last); ++phase) {
      OpPassManager pipeline(ModuleOp::getOperationName());
      buildPhase(static_cast<Phase>(phase), pipeline, options);
      if (failed(runPipeline(pipeline, module)))
        return signalPassFailure();
      module->setAttr(
          kPhaseAttr,
          StringAttr::get(&getContext(),
                          stringifyPhase(static_cast<Phase>(phase))));
    }
  }

  PhaseOptions phaseOptions() const {
    PhaseOptions options;
    options.train.enabled = train;
    options.train.loss = loss;
    options.train.optimizer = optimizer;
    options.train.settings.assign(settings.begin(), settings.end());
    options.train.trainable.assign(trainable.begin(), trainable.end());
    options.train.frozen.assign(frozen.begin(), frozen.end());
    options.train.emitGradients = emitGradients;
    options.train.entries.assign(entries.begin(), entries.end());
    options.train.evalOutputs.assign(evalOutputs.begin(), evalOutputs.end());
    options.train.mixedPrecision = mixedPrecision;
    options.train.microBatches = microBatches;
    options.mesh = mesh;
    options.batchDims.assign(batchDims.begin(), batchDims.end());
    options.sharding.stage = zeroStage;
    options.sharding.gatherOnce = zeroGatherOnce;
    options.schedule = schedule;
    options.target = target;
    options.threads = threads;
    return options;
  }
};
} // namespace
} // namespace accel::driver
