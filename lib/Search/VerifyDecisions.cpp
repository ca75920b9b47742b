// Holds the split program against what phase `decided` wrote down.

#include "InFlight.h"
#include "Passes.h"
#include "StateChoices.h"
#include "Trial.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Accel/Zero.h"
#include "dialects/Dist/ScheduleKind.h"
#include "lib/Cost/Decision.h"
#include "lib/Cost/Frontier.h"
#include "lib/Cost/OffloadDecisions.h"
#include "lib/Cost/Prediction.h"
#include "lib/Tasks/DecidedOrder.h"
#include "mlir/IR/SymbolTable.h"
#include <set>

using namespace mlir;

namespace accel::search {
#define GEN_PASS_DEF_VERIFYDECISIONSPASS
#include "lib/Search/Passes.h.inc"

namespace {
struct VerifyDecisionsPass
    : impl::VerifyDecisionsPassBase<VerifyDecisionsPass> {
  using Base::Base;

  void runOnOperation() override {
    auto decisions =
        getOperation()->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
    if (!decisions) {
      getOperation().emitError()
          << "expected '" << kDecisionsAttr << "', found none";
      return signalPassFailure();
    }
    int64_t microBatches = 1;
    DenseI64ArrayAttr inFlight;
    for (NamedAttribute decision : decisions) {
      StringRef key = decision.getName();
      auto number = dyn_cast<IntegerAttr>(decision.getValue());
      auto counts = dyn_cast<DenseI64ArrayAttr>(decision.getValue());
      if (key == "micro_batches" && number) {
        microBatches = number.getInt();
      } else if (llvm::is_contained(
                     {kMemoryBudgetKey, kHostBudgetKey, kNvmeBudgetKey}, key) &&
                 number) {
        continue; // search-verify-memory looks at it
      } else if (key == kInFlightKey && counts) {
        inFlight = counts;
      } else if (auto name = dyn_cast<StringAttr>(decision.getValue());
                 key == kGathersDecision && name &&
                 name.getValue() == kGathersOnce) {
        if (failed(checkGatheredOnce()))
          return signalPassFailure();
      } else if (llvm::is_contained(kOffloadDecisions, key) && name &&
                 (name.getValue() == "host" || name.getValue() == "nvme")) {
        continue; // search-verify-memory looks at it
      } else if (!(key == kScheduleKey && name) &&
                 !(llvm::is_contained({StringRef(tasks::kOrderKey),
                                       StringRef(cost::kConsideredKey),
                                       StringRef(cost::kPredictedKey),
                                       StringRef(cost::kFrontierKey)},
                                      key) &&
                   isa<ArrayAttr>(decision.getValue()))) {
        getOperation().emitError()
            << "expected a number of micro_batches, the name of a schedule, "
               "the numbers in_flight, gathers \"once\", memory_budget, "
               "host_budget, nvme_budget, offload_optimizer, "
               "offload_parameters and offload_activations \"host\" or "
               "\"nvme\", and the lists order, "
               "considered, predicted and frontier in '"
            << kDecisionsAttr << "', found " << decision.getName() << " = "
            << decision.getValue();
        return signalPassFailure();
      }
    }
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    int64_t stages =
        mesh ? mesh.findAxisSize(dist::MeshOp::kPipelineAxis).value_or(1) : 1;
    FailureOr<SmallVector<int64_t>> allowed =
        countInFlight(getOperation(), decisions, stages, microBatches);
    if (failed(allowed))
      return signalPassFailure();
    if (inFlight && inFlight.size() != stages) {
      getOperation().emitError()
          << "expected 'in_flight' of '" << kDecisionsAttr << "' for " << stages
          << (stages == 1 ? " stage" : " stages") << ", found it for "
          << inFlight.size();
      return signalPassFailure();
    }
    // What was decided may be less than what the schedule has, and not more.
    for (size_t stage = 0; inFlight && stage < allowed->size(); ++stage)
      (*allowed)[stage] = std::min((*allowed)[stage], inFlight[stage]);
    auto name = decisions.getAs<StringAttr>(kScheduleKey);
    StringRef decided =
        name ? name.getValue() : StringRef(dist::ScheduleKind::kDefault);
    if (failed(checkTold(decided, decisions.contains(kGathersDecision))))
      return signalPassFailure();
    SymbolTableCollection symbols;
    for (auto schedule : getOperation().getOps<dist::ScheduleOp>()) {
      int64_t found = schedule.getMicroBatches();
      if (found != microBatches) {
        schedule.emitOpError() << "expected the decided " << microBatches
                               << " micro-batches, found " << found;
        return signalPassFailure();
      }
      for (auto [stage, most] :
           llvm::zip(schedule.getOps<dist::StageOp>(), *allowed))
        if (int64_t inFlight = countOfStage(stage, symbols); inFlight > most) {
          stage.emitOpError() << "expected at most " << most
                              << " micro-batches in flight in schedule "
                              << decided << ", found " << inFlight;
          return signalPassFailure();
        }
    }
  }

  /// Whether what was told of the step is what it does.
  LogicalResult checkTold(StringRef schedule, bool gathersOnce) {
    auto told = cost::readDecisions(getOperation());
    if (failed(told))
      return failure();
    auto refuse = [&](const cost::Decision &decision, const Twine &expected,
                      const Twine &found) {
      return getOperation().emitError()
             << "expected for '" << decision.name << "' " << expected.str()
             << ", which was told in '" << cost::kConsideredKey << "' of '"
             << kDecisionsAttr << "', found " << found.str();
    };
    for (const cost::Decision &decision : *told) {
      const cost::Alternative &chosen = decision.chosen;
      StringRef value = chosen.value;
      if (decision.name == kScheduleKey && value != schedule)
        return refuse(decision, "'" + value + "'", "'" + schedule + "'");
      if (decision.name == kGathers && (value == kGathersOnce) != gathersOnce)
        return refuse(decision, "'" + value + "'",
                      gathersOnce ? "'once'" : "'by unit'");
      if (decision.name == kAccumulators)
        if (int64_t found = countAccumulatorBytes(getOperation());
            chosen.bytes.value_or(0) != found)
          return refuse(decision,
                        Twine(chosen.bytes.value_or(0)) + " bytes of a rank",
                        Twine(found));
      if (decision.name == cost::kCuts) {
        int64_t chunks = value.count(',') + 2, found = countChunks();
        if (chunks != found)
          return refuse(decision, Twine(chunks) + " chunks", Twine(found));
      }
    }
    return success();
  }

  /// Of the pipeline, by its tasks.
  int64_t countChunks() {
    std::set<std::pair<int64_t, int64_t>> chunks;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (auto task = function->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr))
        chunks.insert({task.getStage(), task.getChunk()});
    return chunks.size();
  }

  /// Whether no weight is gathered by unit.
  LogicalResult checkGatheredOnce() {
    WalkResult result = getOperation().walk([](dist::AllGatherOp gather) {
      auto by = gather->getAttrOfType<StringAttr>(dist::kInsertedByAttr);
      if (!by || by.getValue() != "dist-place-gathers")
        return WalkResult::advance();
      gather.emitOpError() << "expected weights to be gathered once a step, as "
                              "decided, found a gather of unit "
                           << gather->getAttr(dist::kUnitAttr);
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  /// The most micro-batches whose forward has begun and whose backward has not
  /// ended (of one in two parts the second, if it has any op), which both do in
  /// chunk 0: counted run by run, for no loop is that long. Without a backward
  /// each ends where it begins.
  static int64_t countOfStage(dist::StageOp stage,
                              SymbolTableCollection &symbols) {
    SmallVector<dist::TaskKind> runs; // of chunk 0
    auto add = [&](dist::RunOp run) {
      Operation *task = symbols.lookupNearestSymbolFrom(run, run.getTaskAttr());
      auto what = task->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr);
      if (what.getChunk() == 0)
        runs.push_back(what.getKind());
    };
    for (Operation &op : stage.getBody().front()) {
      if (auto run = dyn_cast<dist::RunOp>(op))
        add(run);
      if (auto loop = dyn_cast<dist::LoopOp>(op))
        for (int64_t turn = 0; turn < int64_t(loop.getTrips()); ++turn)
          llvm::for_each(loop.getOps<dist::RunOp>(), add);
    }
    dist::TaskKind last = dist::TaskKind::forward;
    for (dist::TaskKind kind :
         {dist::TaskKind::backward, dist::TaskKind::backward_input,
          dist::TaskKind::backward_weight})
      if (llvm::is_contained(runs, kind))
        last = kind;
    int64_t now = 0, most = 0;
    for (dist::TaskKind kind : runs) {
      now += kind == dist::TaskKind::forward;
      most = std::max(most, now);
      now -= kind == last;
    }
    return most;
  }
};
} // namespace
} // namespace accel::search
