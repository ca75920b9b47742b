// Holds the split program against what phase `decided` wrote down.

#include "Passes.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Dist/ScheduleKind.h"
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
      } else {
        getOperation().emitError()
            << "expected a number of micro_batches and the name of a schedule "
               "in '"
            << kDecisionsAttr << "', found " << decision.getName() << " = "
            << decision.getValue();
        return signalPassFailure();
      }
    }
    auto kind = dist::ScheduleKind::parse(decided);
    if (!kind) {
      getOperation().emitError()
          << "expected a schedule " << dist::ScheduleKind::getNames() << " in '"
          << kDecisionsAttr << "', found '" << decided << "'";
      return signalPassFailure();
    }
    for (auto schedule : getOperation().getOps<dist::ScheduleOp>()) {
      int64_t found = schedule.getMicroBatches();
      if (found != microBatches) {
        schedule.emitOpError() << "expected the decided " << microBatches
                               << " micro-batches, found " << found;
        return signalPassFailure();
      }
      for (auto stage : schedule.getOps<dist::StageOp>())
        if (int64_t inFlight = countInFlight(stage);
            inFlight > kind->getInFlight(found)) {
          stage.emitOpError() << "expected at most " << kind->getInFlight(found)
                              << " micro-batches in flight in schedule "
                              << decided << ", found " << inFlight;
          return signalPassFailure();
        }
    }
  }

  /// The most micro-batches whose forward has begun and whose backward has not
  /// ended, which both do in chunk 0: counted run by run, for no loop is that
  /// long. Without a backward each ends where it begins.
  static int64_t countInFlight(dist::StageOp stage) {
    int64_t now = 0, most = 0;
    bool ends = false;
    auto count = [&](dist::RunOp run) {
      auto task = SymbolTable::lookupNearestSymbolFrom(run, run.getTaskAttr());
      auto kind = task->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr);
      if (kind.getChunk() != 0)
        return;
      now += kind.getKind() == dist::TaskKind::forward;
      most = std::max(most, now);
      now -= kind.getKind() == dist::TaskKind::backward;
      ends |= kind.getKind() == dist::TaskKind::backward;
    };
    for (Operation &op : stage.getBody().front()) {
      if (auto run = dyn_cast<dist::RunOp>(op))
        count(run);
      if (auto loop = dyn_cast<dist::LoopOp>(op))
        for (int64_t turn = 0; turn < int64_t(loop.getTrips()); ++turn)
          llvm::for_each(loop.getOps<dist::RunOp>(), count);
    }
    return ends ? most : std::min<int64_t>(most, 1);
  }
};
} // namespace
} // namespace accel::search
