// Reads stages, edges and tasks.

#include "ScheduleRuns.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

std::vector<ScheduledRun> accel::plan::listRuns(dist::StageOp stage) {
  std::vector<ScheduledRun> runs;
  auto add = [&](dist::RunOp run, int64_t turn) {
    runs.push_back(
        {run.getTaskAttr().getAttr(), int64_t(run.getOffset()) + turn});
  };
  for (Operation &each : stage.getBody().front()) {
    if (auto run = dyn_cast<dist::RunOp>(each))
      add(run, 0);
    if (auto loop = dyn_cast<dist::LoopOp>(each))
      for (int64_t turn = 0, trips = loop.getTrips(); turn < trips; ++turn)
        for (auto run : loop.getOps<dist::RunOp>())
          add(run, turn);
  }
  return runs;
}

llvm::DenseMap<StringAttr, dist::TaskAttr>
accel::plan::listTasks(dist::ScheduleOp schedule) {
  llvm::DenseMap<StringAttr, dist::TaskAttr> tasks;
  for (auto function :
       schedule->getParentOfType<ModuleOp>().getOps<func::FuncOp>())
    tasks[function.getSymNameAttr()] =
        function->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr);
  return tasks;
}

bool accel::plan::isOnce(dist::TaskKind kind) {
  return llvm::is_contained(
      {dist::TaskKind::prepare, dist::TaskKind::norm, dist::TaskKind::update},
      kind);
}

llvm::SetVector<std::pair<StringAttr, StringAttr>>
accel::plan::listChannels(dist::ScheduleOp schedule) {
  llvm::DenseMap<StringAttr, dist::TaskAttr> tasks = listTasks(schedule);
  llvm::SetVector<std::pair<StringAttr, StringAttr>> channels;
  for (auto edge : schedule.getOps<dist::EdgeOp>()) {
    StringAttr names[] = {edge.getSourceAttr().getAttr(),
                          edge.getTargetAttr().getAttr()};
    dist::TaskAttr source = tasks.lookup(names[0]),
                   target = tasks.lookup(names[1]);
    if (source.getStage() != target.getStage() && !isOnce(source.getKind()) &&
        !isOnce(target.getKind()))
      channels.insert({names[0], names[1]});
  }
  return channels;
}

int64_t accel::plan::getDuration(dist::TaskKind kind) {
  return 1 + (kind == dist::TaskKind::backward);
}
