// Holds the split program against what phase `decided` wrote down.

#include "Passes.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Accel/Zero.h"
#include "dialects/Dist/ScheduleKind.h"
#include "lib/Pipeline/NamedSchedules.h"
#include "mlir/IR/SymbolTable.h"

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
    StringRef decided = dist::ScheduleKind::kDefault;
    for (NamedAttribute decision : decisions) {
      auto number = dyn_cast<IntegerAttr>(decision.getValue());
      auto name = dyn_cast<StringAttr>(decision.getValue());
      if (decision.getName() == "micro_batches" && number) {
        microBatches = number.getInt();
      } else if (decision.getName() == "schedule" && name) {
        decided = name;
      } else if (decision.getName() == kGathersDecision && name &&
                 name.getValue() == kGathersOnce) {
        if (failed(checkGatheredOnce()))
          return signalPassFailure();
      } else {
        getOperation().emitError()
            << "expected a number of micro_batches, the name of a schedule and "
               "gathers \"once\" in '"
            << kDecisionsAttr << "', found " << decision.getName() << " = "
            << decision.getValue();
        return signalPassFailure();
      }
    }
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    int64_t stages =
        mesh ? mesh.findAxisSize(dist::MeshOp::kPipelineAxis).value_or(1) : 1;
    FailureOr<SmallVector<int64_t>> allowed =
        getInFlight(decided, stages, microBatches);
    if (failed(allowed))
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
        if (int64_t inFlight = countInFlight(stage, symbols); inFlight > most) {
          stage.emitOpError() << "expected at most " << most
                              << " micro-batches in flight in schedule "
                              << decided << ", found " << inFlight;
          return signalPassFailure();
        }
    }
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

  /// How many micro-batches each stage may have in flight in its chunk 0.
  FailureOr<SmallVector<int64_t>> getInFlight(StringRef decided, int64_t stages,
                                              int64_t microBatches) {
    auto fail = [&](StringRef names) {
      return getOperation().emitError()
             << "expected a schedule " << names << " in '" << kDecisionsAttr
             << "', found '" << decided << "'";
    };
    if (stages == 1) {
      auto kind = dist::ScheduleKind::parse(decided);
      if (!kind)
        return fail(dist::ScheduleKind::getNames());
      return SmallVector<int64_t>{kind->getInFlight(microBatches)};
    }
    auto choice = pipeline::parseChoice(decided);
    if (!choice) {
      llvm::consumeError(choice.takeError());
      return fail("of several stages");
    }
    if (!choice->named) // auto keeps what 1f1b keeps on its first stage
      return SmallVector<int64_t>(stages, stages);
    auto order = pipeline::generate(
        *choice->named, {stages, choice->chunksPerRank, microBatches});
    if (!order)
      return getOperation().emitError() << llvm::toString(order.takeError());
    SmallVector<int64_t> most;
    for (auto [stage, tasks] : llvm::enumerate(order->ranks)) {
      auto first = llvm::find(order->placement.rankOfChunk, stage);
      int64_t chunk = first - order->placement.rankOfChunk.begin(), now = 0;
      int64_t &peak = most.emplace_back(0);
      for (const pipeline::Task &task : tasks)
        if (task.chunk == chunk) {
          now += task.kind == pipeline::TaskKind::Forward;
          peak = std::max(peak, now);
          now -= task.kind == pipeline::TaskKind::Backward ||
                 task.kind == pipeline::TaskKind::BackwardWeight;
        }
    }
    return most;
  }

  /// The most micro-batches whose forward has begun and whose backward has not
  /// ended (of one in two parts the second, if it has any op), which both do in
  /// chunk 0: counted run by run, for no loop is that long. Without a backward
  /// each ends where it begins.
  static int64_t countInFlight(dist::StageOp stage,
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
