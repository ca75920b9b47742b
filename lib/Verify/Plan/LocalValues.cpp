// Tasks on value numbers: states as a table that runs read and write, edges as
// values that wait for their reader.

#include "LocalValues.h"

#include "dialects/Plan/RunList.h"

using namespace mlir;
using namespace accel;
using namespace accel::verify;

/// Which tasks run on which micro-batch, in their order: of a loop as many
/// turns as of the plan's.
static std::vector<std::pair<StringAttr, int64_t>>
listRuns(dist::ScheduleOp schedule) {
  std::vector<std::pair<StringAttr, int64_t>> runs;
  auto add = [&](Operation &parent, int64_t turn) {
    for (auto run : parent.getRegion(0).getOps<dist::RunOp>())
      runs.push_back({run.getTaskAttr().getAttr(),
                      static_cast<int64_t>(run.getOffset()) + turn});
  };
  for (auto stage : schedule.getOps<dist::StageOp>())
    for (Operation &op : stage.getBody().front()) {
      if (auto run = dyn_cast<dist::RunOp>(op))
        runs.push_back({run.getTaskAttr().getAttr(), run.getOffset()});
      if (isa<dist::LoopOp>(op))
        for (int64_t turn = 0; turn < plan::kProofTurns; ++turn)
          add(op, turn);
    }
  return runs;
}

void LocalValues::readEdges() {
  for (auto edge : schedule.getOps<dist::EdgeOp>())
    edges[{edge.getTargetAttr().getAttr(), edge.getArgument()}] = {
        edge.getSourceAttr().getAttr(), edge.getResult()};
}

LogicalResult LocalValues::run() {
  func::FuncOp entry;
  for (auto function : module.getOps<func::FuncOp>()) {
    tasks[function.getSymNameAttr()] = function;
    for (unsigned number = 0; number < function.getNumResults(); ++number)
      if (auto state = function.getResultAttrOfType<FlatSymbolRefAttr>(
              number, nn::kStateAttr))
        changing.insert(state.getAttr());
    if (!function->hasAttr(nn::kEntryAttr))
      continue;
    if (entry)
      return function.emitOpError() << "expected one entry, found two";
    entry = function;
  }
  if (!entry)
    return module.emitError()
           << "expected a function with '" << nn::kEntryAttr << "', found none";
  for (auto each : module.getOps<dist::ScheduleOp>())
    if (each.getEntry() == entry.getSymName())
      schedule = each;
  if (!schedule) // of a test: the function is its one task
    return runTask(entry, 0);
  if (!llvm::hasSingleElement(schedule.getOps<dist::StageOp>()))
    return schedule.emitOpError() << "expected one stage";
  readEdges();
  for (auto [name, microBatch] : listRuns(schedule))
    if (failed(runTask(tasks.lookup(name), microBatch)))
      return failure();
  return success();
}

LogicalResult LocalValues::runTask(func::FuncOp task, int64_t microBatch) {
  if (!task || task.isExternal() || !task.getBody().hasOneBlock())
    return (task ? task.getOperation() : schedule.getOperation())->emitOpError()
           << "expected tasks that are functions of one block";
  meaning.setMicroBatch(microBatch);
  SmallVector<TermId> arguments, results;
  for (unsigned number = 0; number < task.getNumArguments(); ++number) {
    FailureOr<TermId> argument = getArgument(task, number);
    if (failed(argument))
      return failure();
    arguments.push_back(*argument);
  }
  if (failed(meaning.evaluate(task.getBody(), arguments, results)))
    return failure();
  for (auto [number, result] : llvm::enumerate(results))
    if (failed(takeResult(task, number, result)))
      return failure();
  return success();
}

static PieceKey getPiece(Attribute layout, Type type) {
  if (auto own = dyn_cast_or_null<dist::LayoutAttr>(layout))
    return PieceKey::of(own);
  return PieceKey::whole(cast<RankedTensorType>(type));
}

LocalValues::State &LocalValues::getState(func::FuncOp task, StringAttr name,
                                          const PieceKey &piece,
                                          RankedTensorType type) {
  auto [at, isNew] = states.insert({name, {}});
  if (isNew) {
    at->second.piece = piece;
    // What is made of a state at load is of its first value: that is the value
    // for good only if nothing writes the state.
    at->second.changes = changing.contains(name);
    at->second.term = meaning.given(
        at->second.changes ? Source::State : Source::FirstState, name, piece,
        type.getNumElements(), type.getElementType(), task);
  }
  return at->second;
}

FailureOr<TermId> LocalValues::getArgument(func::FuncOp task, unsigned number) {
  auto type = cast<RankedTensorType>(task.getArgumentTypes()[number]);
  PieceKey piece = getPiece(task.getArgAttr(number, dist::kLayoutAttr), type);
  if (auto state =
          task.getArgAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr)) {
    State &known = getState(task, state.getAttr(), piece, type);
    if (known.piece.key.get() != piece.key.get())
      return task.emitOpError()
             << "expected " << state << " to be the same piece in every task";
    return known.term;
  }
  if (auto input = task.getArgAttrOfType<StringAttr>(number, nn::kInputAttr))
    return meaning.given(Source::Input, input, piece, type.getNumElements(),
                         type.getElementType(), task);
  auto edge = edges.find({task.getSymNameAttr(), number});
  if (edge != edges.end())
    if (auto value = given.find(edge->second); value != given.end())
      return value->second;
  return task.emitOpError() << "expected a task that gives argument " << number
                            << " to run before it";
}

LogicalResult LocalValues::takeResult(func::FuncOp task, unsigned number,
                                      TermId term) {
  auto type = cast<RankedTensorType>(task.getResultTypes()[number]);
  PieceKey piece =
      getPiece(task.getResultAttr(number, dist::kLayoutAttr), type);
  if (auto output =
          task.getResultAttrOfType<StringAttr>(number, nn::kOutputAttr)) {
    auto [at, isNew] = outputs.insert(
        {{output, meaning.getMicroBatch()}, {term, piece, task}});
    if (!isNew)
      return task.emitOpError() << "gives output " << output
                                << " of one micro-batch a second time";
  }
  if (auto name =
          task.getResultAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr)) {
    State &state = getState(task, name.getAttr(), piece, type);
    if (state.piece.key.get() != piece.key.get())
      return task.emitOpError()
             << "expected " << name << " to be the same piece in every task";
    state.term = term;
  }
  given[{task.getSymNameAttr(), number}] = term;
  return success();
}
