// Splits a copy of the program, measures its tasks, and plays them by each
// schedule.

#include "ScheduleChoice.h"

#include "InFlight.h"
#include "dialects/Dist/ScheduleKind.h"
#include "dialects/NN/Entry.h"
#include "lib/Cost/Decision.h"
#include "lib/Cost/Machine.h"
#include "lib/Pipeline/Synthesise.h"
#include "lib/Tasks/TaskCosts.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::search;
using cost::Alternative;
using pipeline::Synthesis;

FailureOr<pipeline::Problem> search::measureTasks(ModuleOp module,
                                                  const PassBuilder &buildSplit,
                                                  int64_t stages,
                                                  int64_t microBatches) {
  OwningOpRef<ModuleOp> copy(module.clone());
  // Nobody reads what the copy tells, and nobody runs it: the program itself is
  // verified when it is split.
  cost::setDecision(*copy, cost::kConsideredKey, {});
  // What the split warns of it says when the program itself is split.
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &said) {
    return success(said.getSeverity() != DiagnosticSeverity::Error);
  });
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  buildSplit(pm);
  if (failed(pm.run(*copy)))
    return failure();
  func::FuncOp step = nn::findEntry(*copy, nn::EntryKind::step);
  auto homes = tasks::TaskHomes::compute(step, dist::MeshOp::of(*copy));
  if (failed(homes))
    return failure();
  homes->splitBackward();
  return tasks::measureTasks(step, *homes, stages, microBatches);
}

static Alternative describe(const Synthesis &tried) {
  const pipeline::Simulation &played = tried.simulation;
  int64_t kept = *llvm::max_element(played.peakActivations);
  return {tried.name, cost::getSeconds(played.seconds),
          *llvm::max_element(played.activationBytes),
          llvm::formatv("{0:f1} % idle, {1} {2} kept",
                        100 * played.getBubbleFraction(), kept,
                        kept == 1 ? "chunk" : "chunks")};
}

/// Of one stage only what is kept differs.
static void tellOfOne(ModuleOp module, const ScheduleChoice &choice,
                      const pipeline::Problem &problem) {
  const pipeline::ChunkCost &chunk = problem.costs.chunks.front();
  auto describe = [&](StringRef name) -> Alternative {
    int64_t kept =
        dist::ScheduleKind::parse(name)->getInFlight(choice.microBatches);
    return {name.str(),
            cost::getSeconds(choice.microBatches *
                             (chunk.forward + chunk.backward)),
            kept * (chunk.inputBytes + chunk.weightBytes),
            std::to_string(kept) + " in flight"};
  };
  cost::Decision decision{
      kScheduleKey.str(), "step", describe(choice.name), {}, "--schedule"};
  for (StringRef name : {"sequential", "gpipe"})
    if (name != choice.name)
      decision.others.push_back(describe(name));
  tell(module, decision);
}

/// All that have a name and as many chunks, also those that keep too much.
/// `found` is null where the name was asked for.
static void tellOfStages(ModuleOp module, StringRef name,
                         pipeline::Problem problem, const Synthesis *found,
                         StringRef reason) {
  problem.cap = {};
  std::vector<Synthesis> named = pipeline::evaluateNamed(problem);
  cost::Decision decision{kScheduleKey.str(), "step", {}, {}, reason.str()};
  if (found)
    decision.chosen = describe(*found);
  for (const Synthesis &each : named) {
    if (each.name != name)
      decision.others.push_back(describe(each));
    else if (!found)
      decision.chosen = describe(each);
  }
  tell(module, decision);
}

LogicalResult search::chooseSchedule(ModuleOp module,
                                     const PassBuilder &buildSplit,
                                     ScheduleChoice &choice) {
  bool isOpen = choice.stages > 1 && choice.name == "auto";
  bool isTold = cost::isAskedForDecisions(module);
  func::FuncOp step = nn::findEntry(module, nn::EntryKind::step);
  // Without backwards all orders are one, and of one micro-batch on one stage.
  bool isOne = choice.stages == 1 && choice.microBatches == 1;
  if (!step || isOne || !(isOpen || (isTold && buildSplit)))
    return success();
  if (!buildSplit)
    return module.emitError()
           << "expected the passes that split the program, with which schedule "
              "auto is looked for: compile with acc-opt --schedule=auto, or "
              "name a schedule";
  FailureOr<pipeline::Problem> problem =
      measureTasks(module, buildSplit, choice.stages, choice.microBatches);
  if (failed(problem))
    return failure();
  if (choice.stages == 1) {
    tellOfOne(module, choice, *problem);
    return success();
  }
  if (!isOpen) {
    tellOfStages(module, choice.name, std::move(*problem), nullptr,
                 "--schedule");
    return success();
  }
  auto tried = pipeline::trySchedules(*problem);
  if (!tried)
    return step.emitError() << llvm::toString(tried.takeError());
  const Synthesis &found = pipeline::findFastest(*tried);
  const Synthesis *plain =
      llvm::find_if(ArrayRef(*tried),
                    [](const Synthesis &one) { return one.name == "1f1b"; });
  step.emitRemark() << "schedule auto is "
                    << (found.name == "auto" ? "one without a name"
                                             : found.name)
                    << ", by estimate in "
                    << std::lround(100 * found.simulation.seconds /
                                   plain->simulation.seconds)
                    << " % of the time of 1f1b";
  choice.name = found.name;
  if (found.name == "auto")
    choice.order = found.schedule;
  if (isTold)
    tellOfStages(module, choice.name, std::move(*problem), &found,
                 "the fastest of which no stage keeps more than " +
                     std::to_string(choice.stages) +
                     " chunks, as 1F1B does (--schedule=auto)");
  return success();
}

void search::tellOfScheduleAgain(ModuleOp module, const Synthesis &chosen,
                                 pipeline::Problem problem, StringRef reason) {
  if (!cost::isAskedForDecisions(module))
    return;
  cost::takeBack(module, {kScheduleKey});
  tellOfStages(module, chosen.name, std::move(problem), &chosen, reason);
}
