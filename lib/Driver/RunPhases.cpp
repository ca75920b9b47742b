// Runs the pipelines of all phases between the one a module has reached and the
// one asked for.

#include "Passes.h"
#include "Phases.h"
#include "Settings.h"

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
      buildPhase(static_cast<Phase>(phase), all, {});
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
    std::optional<Phase> reached = getPhase(module);
    if (!reached) {
      module.emitError() << "expected a module that says which phase it has "
                            "reached, found no '"
                         << kPhaseAttr << "'";
      return signalPassFailure();
    }
    if (*reached > *last) {
      module.emitError() << "cannot compile to phase '" << to
                         << "': the module is past it, in phase '"
                         << stringifyPhase(*reached) << "'";
      return signalPassFailure();
    }
    FailureOr<PhaseOptions> options = phaseOptions();
    if (failed(options))
      return signalPassFailure();
    if (*reached >= Phase::Train && options->wire.hook != "no") {
      module.emitError() << "cannot use 'comm_hook': the module is in phase '"
                         << stringifyPhase(*reached) << "', past what reads it";
      return signalPassFailure();
    }
    options->logical = equivalence::makeKeptProgram();
    options->padded = equivalence::makeKeptProgram();
    for (int phase = static_cast<int>(*reached) + 1;
         phase <= static_cast<int>(*last); ++phase) {
      OpPassManager pipeline(ModuleOp::getOperationName());
      buildPhase(static_cast<Phase>(phase), pipeline, *options);
      if (failed(runPipeline(pipeline, module)))
        return signalPassFailure();
      setPhase(module, static_cast<Phase>(phase));
    }
  }

  /// Reports settings that are none, at the module.
  FailureOr<PhaseOptions> phaseOptions() {
    PhaseOptions options;
    options.train.enabled = train;
    options.train.step.loss = loss;
    options.train.step.optimizer = optimizer;
    options.train.step.trainable = llvm::to_vector_of<std::string>(trainable);
    options.train.step.frozen = llvm::to_vector_of<std::string>(frozen);
    options.train.step.emitGradients = emitGradients;
    options.train.inference.entries = llvm::to_vector_of<std::string>(entries);
    options.train.inference.evalOutputs =
        llvm::to_vector_of<std::string>(evalOutputs);
    options.train.inference.batchDims =
        llvm::to_vector_of<std::string>(batchDims);
    options.train.mixedPrecision = mixedPrecision;
    if (!metrics.empty() && metrics != "precision")
      return getOperation().emitError()
             << "expected precision as 'metrics', found '" << metrics << "'";
    options.measuresRounding = metrics == "precision";
    options.cut.cuts.assign(cuts.begin(), cuts.end());
    options.place.annotate.mesh = mesh;
    options.place.annotate.microBatches = microBatches;
    options.place.annotate.batchDims =
        llvm::to_vector_of<std::string>(batchDims);
    options.place.placeNamed.shard = llvm::to_vector_of<std::string>(shard);
    options.decide.schedule = schedule;
    options.plan.target = target;
    options.plan.threads = threads;
    for (const std::string &one : settings) {
      auto [name, value] = StringRef(one).split('=');
      if (!isPhaseSetting(name)) {
        if (!train)
          return getOperation().emitError()
                 << "expected 'train' with 'set=" << one
                 << "', which is no setting of a pass";
        options.train.step.settings.push_back(one);
      } else if (llvm::Error error = applySetting(options, name, value))
        return getOperation().emitError() << llvm::toString(std::move(error));
    }
    for (const std::string &one : settings)
      if (llvm::Error error = checkIsRead(options, one))
        return getOperation().emitError() << llvm::toString(std::move(error));
    return options;
  }
};
} // namespace
} // namespace accel::driver
