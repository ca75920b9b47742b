// Text may come from anywhere: nothing is emitted of it that was not proved
// from `train` on.

#include "ProveStart.h"

#include "OpenText.h"
#include "lib/Autodiff/Passes.h"
#include "lib/Equivalence/Passes.h"
#include "lib/Parallel/Passes.h"
#include "lib/Plan/Passes.h"
#include "lib/Search/Passes.h"

using namespace mlir;
using namespace accel;
using namespace accel::driver;

static constexpr StringLiteral kFlag = "--proved-against";

static LogicalResult failStart(MLIRContext *context, StringRef file,
                               const Twine &message) {
  return emitError(FileLineColLoc::get(context, file, 0, 0)) << message;
}

/// What holds at the end of a phase, whoever wrote its text.
static void addVerifiers(Phase phase, PassManager &pm) {
  switch (phase) {
  case Phase::NN: // what is written by hand has no ONNX nodes
    return;
  case Phase::Train:
    pm.addPass(autodiff::createVerifyStepPass());
    return;
  case Phase::Dist:
  case Phase::Decided:
    pm.addPass(parallel::createVerifyPass());
    return;
  case Phase::Local:
    pm.addPass(parallel::createVerifyLocalPass());
    pm.addPass(search::createVerifyDecisionsPass());
    return;
  case Phase::Plan:
    pm.addPass(plan::createVerifyPlanPass());
    return;
  }
}

namespace {
/// The programs of earlier phases.
struct Earlier {
  OwningOpRef<ModuleOp> train, local;
};
} // namespace

static LogicalResult readEarlier(MLIRContext *context, const TextStart &start,
                                 Earlier &earlier) {
  for (const std::string &file : start.provedAgainst) {
    OwningOpRef<ModuleOp> module = parseModule(file, context);
    if (!module)
      return failure();
    std::optional<Phase> phase = getPhase(*module);
    bool isWanted = phase == Phase::Train ||
                    (phase == Phase::Local && start.reached == Phase::Plan);
    if (!isWanted)
      return failStart(
          context, file,
          "expected what phase 'train' ended with" +
              Twine(start.reached == Phase::Plan ? ", or 'local'" : "") +
              ", found " +
              (phase ? "phase '" + stringifyPhase(*phase) + "'"
                     : Twine("no 'accel.phase'")));
    OwningOpRef<ModuleOp> &place =
        phase == Phase::Train ? earlier.train : earlier.local;
    if (place)
      return failStart(context, file,
                       "expected one program of phase '" +
                           stringifyPhase(*phase) + "', found two");
    place = std::move(module);
  }
  return success();
}

static LogicalResult refuseEmission(MLIRContext *context,
                                    const TextStart &start, Phase missing) {
  StringRef name = stringifyPhase(missing);
  return failStart(context, start.file,
                   "cannot become an executable unproved: the module begins in "
                   "phase '" +
                       stringifyPhase(start.reached) + "'; give what phase '" +
                       name + "' ended with (acc-opt … --compile-to=" + name +
                       ") by " + kFlag + "=FILE");
}

LogicalResult driver::proveStart(ModuleOp module, const TextStart &start,
                                 PhaseOptions &phases, RunPasses run) {
  MLIRContext *context = module.getContext();
  if (start.reached <= Phase::Train) {
    if (!start.provedAgainst.empty())
      return failStart(context, start.file,
                       "cannot use '" + kFlag + "': the module is in phase '" +
                           stringifyPhase(start.reached) +
                           "', and proofs begin with 'train'");
    return run(module, "verifying the text",
               [&](PassManager &pm) { addVerifiers(start.reached, pm); });
  }
  Earlier earlier;
  if (failed(readEarlier(context, start, earlier)))
    return failure();
  if (start.isEmitted && !earlier.train)
    return refuseEmission(context, start, Phase::Train);
  if (start.isEmitted && start.reached == Phase::Plan && !earlier.local)
    return refuseEmission(context, start, Phase::Local);
  // Of a plan `local` is what `train` is held against.
  ModuleOp local = start.reached == Phase::Local  ? module
                   : start.reached == Phase::Plan ? *earlier.local
                                                  : ModuleOp();
  if (start.reached != Phase::Local &&
      failed(run(module, "verifying the text",
                 [&](PassManager &pm) { addVerifiers(start.reached, pm); })))
    return failure();
  if (local && failed(run(local, "proving the text", [&](PassManager &pm) {
        addVerifiers(Phase::Local, pm);
        if (earlier.train)
          pm.addPass(equivalence::createVerifyEquivalencePass(
              equivalence::makeKeptProgram(std::move(earlier.train))));
      })))
    return failure();
  if (start.reached == Phase::Plan && earlier.local)
    return run(module, "proving the text", [&](PassManager &pm) {
      pm.addPass(equivalence::createVerifyPlanEquivalencePass(
          equivalence::makeKeptProgram(std::move(earlier.local))));
    });
  if (earlier.train)
    phases.logical = equivalence::makeKeptProgram(std::move(earlier.train));
  return success();
}
