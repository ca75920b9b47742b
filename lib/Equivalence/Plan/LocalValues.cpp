// Tasks on value numbers: states as a table that runs read and write, edges as
// values that wait for their reader.

#include "LocalValues.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

static PieceKey getPiece(Attribute layout, Type type) {
  if (auto own = dyn_cast_or_null<dist::LayoutAttr>(layout))
    return PieceKey::of(own);
  return PieceKey::whole(cast<RankedTensorType>(type));
}

LogicalResult LocalValues::readSchedule(dist::ScheduleOp schedule) {
  SmallVector<dist::StageOp> stages(schedule.getOps<dist::StageOp>());
  if (stage >= static_cast<int64_t>(stages.size()))
    return schedule.emitOpError() << "expected a stage " << stage;
  auto add = [&](dist::RunOp run) {
    sections.back().runs.push_back(
        {run.getTaskAttr().getAttr(), run.getOffset()});
  };
  dist::StageOp own = stages[stage];
  sections.push_back({0, {}, own});
  for (Operation &op : own.getBody().front()) {
    if (auto run = dyn_cast<dist::RunOp>(op))
      add(run);
    auto loop = dyn_cast<dist::LoopOp>(op);
    if (!loop)
      continue;
    sections.push_back({int64_t(loop.getTrips()), {}, loop});
    llvm::for_each(loop.getOps<dist::RunOp>(), add);
    sections.push_back({0, {}, own});
  }
  llvm::DenseSet<StringAttr> seen;
  schedule.walk([&](dist::RunOp run) {
    StringAttr name = run.getTaskAttr().getAttr();
    if (run.getTurn() || !seen.insert(name).second)
      repeated.insert(name);
  });
  for (auto edge : schedule.getOps<dist::EdgeOp>()) {
    End target{edge.getTargetAttr().getAttr(), edge.getArgument()};
    edges[target] = {edge.getSourceAttr().getAttr(), edge.getResult()};
    targets.push_back(target);
  }
  return success();
}

void LocalValues::unrollExchanging() {
  llvm::DenseSet<StringAttr> exchanging;
  for (auto [target, source] : edges) {
    auto stageOf = [&](StringAttr task) {
      return tasks.lookup(task)
          ->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr)
          .getStage();
    };
    if (stageOf(target.first) != stageOf(source.first))
      exchanging.insert_range(ArrayRef{target.first, source.first});
  }
  std::vector<Section> all{{0, {}, sections.front().op}};
  for (const Section &section : sections) {
    bool isLoop = section.trips > 0;
    if (isLoop && llvm::none_of(section.runs, [&](const auto &run) {
          return exchanging.contains(run.first);
        })) {
      all.push_back(section);
      all.push_back({0, {}, sections.front().op});
      continue;
    }
    for (int64_t turn = 0; turn < (isLoop ? section.trips : 1); ++turn)
      for (auto [task, offset] : section.runs)
        all.back().runs.push_back({task, offset + turn});
  }
  sections = std::move(all);
}

LogicalResult LocalValues::read() {
  for (auto function : module.getOps<func::FuncOp>()) {
    tasks[function.getSymNameAttr()] = function;
    for (unsigned number = 0; number < function.getNumResults(); ++number)
      if (auto state = function.getResultAttrOfType<FlatSymbolRefAttr>(
              number, nn::kStateAttr))
        changing.insert(state.getAttr());
  }
  for (auto schedule : module.getOps<dist::ScheduleOp>())
    if (schedule.getEntry() == entry.getSymName() &&
        failed(readSchedule(schedule)))
      return failure();
  if (sections.empty()) // of a test: the function is its one task
    sections.push_back({0, {{entry.getSymNameAttr(), 0}}, entry});
  for (const Section &section : sections)
    for (auto [name, offset] : section.runs)
      if (func::FuncOp task = tasks.lookup(name);
          task && failed(declareStates(task)))
        return failure();
  return success();
}

llvm::SetVector<StringAttr> LocalValues::getWritten(const Section &section) {
  llvm::SetVector<StringAttr> written;
  for (auto [name, offset] : section.runs)
    if (func::FuncOp task = tasks.lookup(name))
      for (unsigned number = 0; number < task.getNumResults(); ++number)
        if (auto state = task.getResultAttrOfType<FlatSymbolRefAttr>(
                number, nn::kStateAttr))
          written.insert(state.getAttr());
  return written;
}

void LocalValues::beginTurn(StringAttr name) {
  State &state = states[name];
  state.term = meaning.given(Source::TurnState, name, state.piece,
                             state.type.getNumElements(),
                             state.type.getElementType(), module);
}

LogicalResult LocalValues::run(const Section &section) {
  for (auto [name, offset] : section.runs) {
    func::FuncOp task = tasks.lookup(name);
    if (!task || task.isExternal() || !task.getBody().hasOneBlock())
      return section.op->emitOpError()
             << "expected tasks that are functions of one block, found '"
             << name.getValue() << "'";
    meaning.setMicroBatch(offset, section.trips != 0);
    if (failed(runTask(task)))
      return failure();
  }
  return success();
}

LogicalResult LocalValues::runTask(func::FuncOp task) {
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

/// A state is the same piece to all tasks.
LogicalResult LocalValues::declareState(func::FuncOp task,
                                        FlatSymbolRefAttr name,
                                        Attribute layout, Type tensor) {
  if (!name)
    return success();
  auto type = cast<RankedTensorType>(tensor);
  PieceKey piece = getPiece(layout, type);
  auto [at, isNew] = states.insert({name.getAttr(), {}});
  State &state = at->second;
  if (!isNew) {
    if (state.piece.key.get() != piece.key.get() || state.type != type)
      return task.emitOpError()
             << "expected " << name << " to be the same piece in every task";
    return success();
  }
  state.piece = piece;
  state.type = type;
  // What is made of a state at load is of its first value: that is the value
  // for good only if nothing writes the state.
  state.changes = changing.contains(name.getAttr());
  state.term = meaning.given(state.changes ? Source::State : Source::FirstState,
                             name.getAttr(), piece, type.getNumElements(),
                             type.getElementType(), task);
  return success();
}

LogicalResult LocalValues::declareStates(func::FuncOp task) {
  for (auto [number, type] : llvm::enumerate(task.getArgumentTypes()))
    if (failed(declareState(
            task,
            task.getArgAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr),
            task.getArgAttr(number, dist::kLayoutAttr), type)))
      return failure();
  for (auto [number, type] : llvm::enumerate(task.getResultTypes()))
    if (failed(declareState(
            task,
            task.getResultAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr),
            task.getResultAttr(number, dist::kLayoutAttr), type)))
      return failure();
  return success();
}

FailureOr<TermId> LocalValues::getArgument(func::FuncOp task, unsigned number) {
  auto type = cast<RankedTensorType>(task.getArgumentTypes()[number]);
  PieceKey piece = getPiece(task.getArgAttr(number, dist::kLayoutAttr), type);
  if (auto state =
          task.getArgAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr))
    return states[state.getAttr()].term;
  if (auto input = task.getArgAttrOfType<StringAttr>(number, nn::kInputAttr))
    return meaning.given(Source::Input, input, piece, type.getNumElements(),
                         type.getElementType(), task);
  End target{task.getSymNameAttr(), number};
  if (auto edge = edges.find(target); edge != edges.end()) {
    if (getStage(edge->second) != stage)
      return getReceived(target, edge->second);
    if (std::optional<TermId> value =
            getSource(edge->second, repeated.contains(target.first)))
      return *value;
  }
  return task.emitOpError() << "expected a task that gives argument " << number
                            << " to run before it";
}

/// The stage of a task at an end of an edge.
int64_t LocalValues::getStage(End end) const {
  auto task =
      tasks.lookup(end.first)->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr);
  return task ? task.getStage() : 0;
}

/// What a task of this stage has given to one on the micro-batch at hand.
std::optional<TermId> LocalValues::getSource(End source, bool targetRepeats) {
  auto found = given.find(source);
  if (found == given.end())
    return std::nullopt;
  auto exact = found->second.values.find(meaning.getMicroBatch());
  if (exact != found->second.values.end())
    return exact->second;
  // What runs once gives to all micro-batches, or takes what they all give.
  if (!repeated.contains(source.first) || !targetRepeats)
    return lastGiven.lookup(source);
  return getGiven(found->second);
}

/// What another stage gives: on every micro-batch something else, if the task
/// there runs on each.
TermId LocalValues::getReceived(End target, End source) {
  func::FuncOp task = tasks.lookup(target.first);
  auto type = cast<RankedTensorType>(task.getArgumentTypes()[target.second]);
  PieceKey piece = PieceKey::whole(type);
  piece.varies = repeated.contains(source.first);
  auto name =
      StringAttr::get(module.getContext(),
                      target.first.getValue() + " " + Twine(target.second));
  return meaning.given(Source::Edge, name, piece, type.getNumElements(),
                       type.getElementType(), task);
}

FailureOr<TermId> LocalValues::getMessage(int64_t number, bool sends,
                                          int64_t delta, Operation *op) {
  if (number < 0 || number >= static_cast<int64_t>(targets.size()))
    return op->emitOpError()
           << "expected the number of an edge, found " << number;
  End target = targets[number], source = edges.lookup(target);
  int64_t from = getStage(source), to = getStage(target);
  if (from == to || (sends ? from : to) != stage ||
      delta != (sends ? to - from : from - to))
    return op->emitOpError()
           << "does not follow from the local program: edge " << number
           << " goes from stage " << from << " to stage " << to;
  if (!sends)
    return getReceived(target, source);
  if (std::optional<TermId> value =
          getSource(source, repeated.contains(target.first)))
    return *value;
  return op->emitOpError() << "expected @" << source.first.getValue()
                           << ", which gives what it sends, to run before it";
}

TermId LocalValues::rename(TermId term, MicroBatch from, MicroBatch to) {
  auto [at, isNew] = renamings.try_emplace({from, to}, meaning.terms, from, to);
  return at->second.rename(term);
}

/// What a task has given to the micro-batch at hand in a turn that another one
/// stands for. None if its runs do not agree about what they give.
std::optional<TermId> LocalValues::getGiven(Given &values) {
  MicroBatch microBatch = meaning.getMicroBatch(),
             any = getAnyMicroBatch(module.getContext());
  std::optional<TermId> known;
  for (auto [from, value] : values.values) {
    TermId term = rename(value, from, any);
    if (known && *known != term)
      return std::nullopt;
    known = term;
  }
  values.any = known;
  return rename(*known, any, microBatch);
}

LogicalResult LocalValues::takeResult(func::FuncOp task, unsigned number,
                                      TermId term) {
  auto type = cast<RankedTensorType>(task.getResultTypes()[number]);
  PieceKey piece =
      getPiece(task.getResultAttr(number, dist::kLayoutAttr), type);
  if (auto output =
          task.getResultAttrOfType<StringAttr>(number, nn::kOutputAttr)) {
    auto [at, isNew] = outputs.insert(
        {getKey(output, meaning.getMicroBatch()), {term, piece, task}});
    if (!isNew)
      return task.emitOpError() << "gives output " << output
                                << " of one micro-batch a second time";
  }
  if (auto name =
          task.getResultAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr))
    states[name.getAttr()].term = term;
  End end{task.getSymNameAttr(), number};
  MicroBatch microBatch = meaning.getMicroBatch();
  Given &known = given[end];
  known.values[microBatch] = lastGiven[end] = term;
  if (known.any && rename(term, microBatch,
                          getAnyMicroBatch(module.getContext())) != *known.any)
    return task.emitOpError()
           << "gives as result " << number
           << " something else than it gave to micro-batches before it";
  return success();
}
