// Verification of the schedule: stages in order, tasks that differ, runs of
// tasks that exist on micro-batches that exist, loops that repeat, and edges
// between values of the same type.

#include "dialects/Dist/Dist.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include <map>
#include <set>

using namespace mlir;
using namespace accel::dist;

/// The function of that name if it is a task; reports at `op` otherwise.
static FunctionOpInterface lookupTask(Operation *op,
                                      SymbolTableCollection &symbols,
                                      FlatSymbolRefAttr name) {
  auto task = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(op, name);
  if (!task) {
    op->emitOpError() << "no function named " << name;
    return {};
  }
  if (!task->getAttrOfType<TaskAttr>(kTaskAttr)) {
    op->emitOpError() << "function " << name << " is no task: it has no '"
                      << kTaskAttr << "'";
    return {};
  }
  return task;
}

namespace {
struct TaskOrder {
  bool operator()(TaskAttr lhs, TaskAttr rhs) const {
    auto key = [](TaskAttr task) {
      return std::tuple(task.getStage(), task.getChunk(), task.getKind(),
                        task.getRound());
    };
    return key(lhs) < key(rhs);
  }
};
} // namespace

LogicalResult ScheduleOp::verifyRegions() {
  if (getMicroBatches() < 1)
    return emitOpError() << "expected at least one micro-batch, found "
                         << getMicroBatches();
  int64_t next = 0;
  bool edges = false;
  for (Operation &op : getBody().front()) {
    auto stage = dyn_cast<StageOp>(op);
    if (!stage && !isa<EdgeOp>(op))
      return op.emitOpError() << "expected stages and edges in a schedule";
    edges |= !stage;
    if (stage && (edges || static_cast<int64_t>(stage.getIndex()) != next++))
      return op.emitOpError()
             << "expected the stages in order, before all edges, found stage "
             << stage.getIndex();
  }
  return success();
}

/// Whether the chunks that a stage's tasks are of count from 0 without a gap,
/// and each kind, stage and chunk is one task's: what a schedule says of chunk
/// 1 it says of one function.
LogicalResult ScheduleOp::verifySymbolUses(SymbolTableCollection &symbols) {
  std::map<TaskAttr, RunOp, TaskOrder> tasks;
  for (auto stage : getBody().getOps<StageOp>()) {
    WalkResult distinct = stage.walk([&](RunOp run) {
      FunctionOpInterface task = lookupTask(run, symbols, run.getTaskAttr());
      if (!task)
        return WalkResult::interrupt();
      auto what = task->getAttrOfType<TaskAttr>(kTaskAttr);
      RunOp first = tasks.try_emplace(what, run).first->second;
      if (first.getTaskAttr() == run.getTaskAttr())
        return WalkResult::advance();
      run.emitOpError() << "expected one task " << what << ", found "
                        << first.getTaskAttr() << " and " << run.getTaskAttr();
      return WalkResult::interrupt();
    });
    if (distinct.wasInterrupted())
      return failure();
  }
  std::set<std::pair<int64_t, int64_t>> chunks; // with their stages
  for (auto &[what, run] : tasks)
    chunks.insert({what.getStage(), what.getChunk()});
  for (auto &[what, run] : tasks)
    if (what.getChunk() > 0 &&
        !chunks.count({what.getStage(), what.getChunk() - 1}))
      return run.emitOpError()
             << "expected a task of chunk " << what.getChunk() - 1
             << " as well, found " << run.getTaskAttr() << " of chunk "
             << what.getChunk() << " of stage " << what.getStage();
  return success();
}

LogicalResult StageOp::verifyRegions() {
  for (Operation &op : getBody().front())
    if (!isa<RunOp, LoopOp>(op))
      return op.emitOpError() << "expected runs and loops in a stage";
  return success();
}

LogicalResult LoopOp::verifyRegions() {
  if (static_cast<int64_t>(getTrips()) < 2)
    return emitOpError() << "expected at least two turns, found "
                         << static_cast<int64_t>(getTrips())
                         << ": what runs once stands outside loops";
  if (getBody().front().empty())
    return emitOpError() << "expected runs, found none";
  for (Operation &op : getBody().front())
    if (!isa<RunOp>(op))
      return op.emitOpError() << "expected runs alone in a loop";
  return success();
}

int64_t RunOp::getTrips() {
  auto loop = dyn_cast<LoopOp>((*this)->getParentOp());
  return loop ? loop.getTrips() : 1;
}

ParseResult accel::dist::parseMicroBatch(OpAsmParser &parser,
                                         IntegerAttr &offset, UnitAttr &turn) {
  int64_t number = 0;
  if (succeeded(parser.parseOptionalKeyword("turn"))) {
    turn = UnitAttr::get(parser.getContext());
    if (succeeded(parser.parseOptionalPlus()) && parser.parseInteger(number))
      return failure();
  } else if (parser.parseInteger(number)) {
    return failure();
  }
  offset = parser.getBuilder().getI64IntegerAttr(number);
  return success();
}

void accel::dist::printMicroBatch(OpAsmPrinter &printer, Operation *,
                                  IntegerAttr offset, UnitAttr turn) {
  if (turn)
    printer << "turn";
  if (turn && offset.getInt() != 0)
    printer << " + ";
  if (!turn || offset.getInt() != 0)
    printer << offset.getInt();
}

LogicalResult RunOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FunctionOpInterface task = lookupTask(*this, symbols, getTaskAttr());
  if (!task)
    return failure();
  auto stage = (*this)->getParentOfType<StageOp>();
  int64_t home = task->getAttrOfType<TaskAttr>(kTaskAttr).getStage();
  if (home != static_cast<int64_t>(stage.getIndex()))
    return emitOpError() << "expected a task of stage " << stage.getIndex()
                         << ", found " << getTaskAttr() << " of stage " << home;
  bool inLoop = isa<LoopOp>((*this)->getParentOp());
  if (inLoop != getTurn())
    return emitOpError() << (inLoop ? "expected 'turn + offset' in a loop"
                                    : "expected a micro-batch outside loops, "
                                      "found 'turn + offset'");
  auto schedule = cast<ScheduleOp>(stage->getParentOp());
  int64_t count = schedule.getMicroBatches(), first = getOffset();
  if (first < 0 || first >= count || getTrips() > count - first)
    return emitOpError() << "expected a micro-batch below " << count
                         << ", found " << first
                         << (inLoop
                                 ? " in turn 0 of " + std::to_string(getTrips())
                                 : "");
  return success();
}

LogicalResult EdgeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FunctionOpInterface from = lookupTask(*this, symbols, getSourceAttr());
  FunctionOpInterface to = lookupTask(*this, symbols, getTargetAttr());
  if (!from || !to)
    return failure();
  if (getResult() >= from.getNumResults() ||
      getArgument() >= to.getNumArguments())
    return emitOpError() << "expected a result of " << from.getNumResults()
                         << " and an argument of " << to.getNumArguments()
                         << ", found " << getResult() << " and "
                         << getArgument();
  Type source = from.getResultTypes()[getResult()];
  Type target = to.getArgumentTypes()[getArgument()];
  if (source != target)
    return emitOpError() << "expected one type at both ends, found " << source
                         << " and " << target;
  return success();
}
