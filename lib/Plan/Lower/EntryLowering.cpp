// Lowers tasks: arguments are buffers, ops commands, results writes.

#include "EntryLowering.h"

#include "lib/Plan/ComputeStream.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

BodyOp SharedProgram::createBody(Location loc, StringRef name) {
  OpBuilder builder = OpBuilder::atBlockEnd(&program.getBody().front());
  std::string unique = name.str();
  for (int next = 0; program.lookupSymbol(unique); ++next)
    unique = (name + "_" + Twine(next)).str();
  return createContainer<BodyOp>(builder, loc, unique, target.getEngine());
}

BufferOp SharedProgram::getStateBuffer(FlatSymbolRefAttr state, Location loc,
                                       RankedTensorType type, PartAttr part) {
  BufferOp &buffer = states[state.getValue()];
  if (buffer)
    return buffer;
  buffer = lowering.createBuffer(loc, state.getValue(), Role::state, type);
  buffer.setPartAttr(part);
  buffer.setSourceAttr(state);
  OpBuilder builder = OpBuilder::atBlockEnd(&loadBody.getBody().front());
  ReadOp::create(builder, loc, Source::state, state.getValue(), part,
                 Lowering::getView(Lowering::getWhole(buffer, type)),
                 /*each_micro_batch=*/false, kComputeStream);
  return buffer;
}

EntryLowering::EntryLowering(SharedProgram &shared, func::FuncOp entry,
                             dist::ScheduleOp schedule, int64_t number,
                             StringRef prefix)
    : shared(shared), entry(entry), schedule(schedule), prefix(prefix),
      transfers(shared, schedule, number, prefix) {
  if (schedule)
    stage = *std::next(schedule.getOps<dist::StageOp>().begin(), number);
}

LogicalResult EntryLowering::run(EntryOp call) {
  llvm::SetVector<Operation *> order;
  if (!schedule) {
    order.insert(entry); // a test's: a function run once
  } else {
    for (auto edge : schedule.getOps<dist::EdgeOp>())
      edges.try_emplace({edge.getTargetAttr(), edge.getArgument()}, edge);
    stage.walk([&](dist::RunOp run) {
      bool isNew = order.insert(findTask(run.getTaskAttr()));
      if (!isNew || run.getTurn())
        repeated.insert(run.getTaskAttr());
    });
  }
  // Those of accumulators, too, which the entry does not show.
  for (Operation *op : order) {
    auto task = cast<func::FuncOp>(op);
    auto name = FlatSymbolRefAttr::get(task);
    numbers.try_emplace(name, numbers.size());
    for (unsigned index = 0; index < task.getNumResults(); ++index)
      if (auto state = task.getResultAttrOfType<FlatSymbolRefAttr>(
              index, nn::kStateAttr))
        writers[state.getValue()].push_back(name);
  }
  writesStates = !writers.empty();
  for (Operation *task : order)
    if (failed(lowerTask(cast<func::FuncOp>(task))))
      return failure();
  if (failed(transfers.finish()))
    return failure();
  return writeRunList(call);
}

BodyOp EntryLowering::createBody(StringRef name) {
  return shared.createBody(entry.getLoc(), (prefix + name).str());
}

static bool isOfOneMicroBatch(Attribute layoutAttr) {
  auto layout = dyn_cast_or_null<dist::LayoutAttr>(layoutAttr);
  return layout && llvm::any_of(layout.getDims(), [](dist::AxesAttr axes) {
           return llvm::any_of(axes.getNames(), [](StringAttr axis) {
             return axis.getValue() == dist::MeshOp::kMicroBatchAxis;
           });
         });
}

LogicalResult EntryLowering::lowerTask(func::FuncOp task) {
  if (task.isExternal() || !task.getBody().hasOneBlock())
    return task.emitOpError() << "expected a function of one block";
  auto kind = task->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr);
  TaskBodies &bodies = tasks[task.getSymNameAttr()];
  // Reading comes first in the text as well.
  for (unsigned index = 0; index < task.getNumArguments(); ++index) {
    auto input = task.getArgAttrOfType<StringAttr>(index, nn::kInputAttr);
    if (!input)
      continue;
    bool isSplit = isOfOneMicroBatch(task.getArgAttr(index, dist::kLayoutAttr));
    BodyOp &read = isSplit ? bodies.read : bodies.readOnce;
    if (!read && (isSplit || !inputs.contains(input)))
      read = createBody(shared.target.getFileSpace() ? "copy_inputs"
                                                     : "read_inputs");
  }
  std::string name = "forward";
  if (kind)
    name = dist::stringifyTaskKind(kind.getKind()).str();
  if (kind && kind.getChunk() != 0)
    name += "_" + std::to_string(kind.getChunk());
  bodies.body = createBody(name);
  shared.commands.setInsertionPointToEnd(&bodies.body.getBody().front());
  for (BlockArgument argument : task.getArguments())
    if (failed(lowerArgument(task, argument, bodies)))
      return failure();
  for (Operation &op : task.front().without_terminator())
    if (failed(shared.lowering.lower(&op)))
      return failure();
  return lowerResults(task, bodies);
}

/// Which piece of a logical tensor an argument or result of `type` is.
static PartAttr getPart(RankedTensorType type, Attribute layoutAttr) {
  MLIRContext *context = type.getContext();
  Builder builder(context);
  if (auto layout = dyn_cast_or_null<dist::LayoutAttr>(layoutAttr)) {
    SmallVector<Attribute> dims;
    for (dist::AxesAttr axes : layout.getDims()) {
      SmallVector<Attribute> names;
      for (StringAttr name : axes.getNames())
        names.push_back(name);
      dims.push_back(builder.getArrayAttr(names));
    }
    return PartAttr::get(context, layout.getShape(), builder.getArrayAttr(dims),
                         layout.getInterleaved());
  }
  SmallVector<Attribute> axes(type.getRank(), builder.getArrayAttr({}));
  return PartAttr::get(context, type.getShape(), builder.getArrayAttr(axes));
}

/// Whether a task is of the stage at hand.
bool EntryLowering::isOwn(FlatSymbolRefAttr name) {
  auto task = findTask(name)->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr);
  return task.getStage() == static_cast<int64_t>(stage.getIndex());
}

/// Where the value lies that an edge carries to an argument of a task.
FailureOr<Place> EntryLowering::findSource(func::FuncOp task,
                                           BlockArgument argument) {
  auto name = FlatSymbolRefAttr::get(task.getSymNameAttr());
  unsigned number = argument.getArgNumber();
  dist::EdgeOp edge = edges.lookup({name, number});
  if (!edge)
    return task.emitOpError()
           << "expected argument " << number << " to carry '" << nn::kStateAttr
           << "' or '" << nn::kInputAttr << "', or an edge to it";
  if (!isOwn(edge.getSourceAttr())) {
    FailureOr<BufferOp> buffer = transfers.receive(edge, argument);
    if (failed(buffer))
      return failure();
    return Lowering::getWhole(*buffer,
                              cast<RankedTensorType>(argument.getType()));
  }
  // A task that another one reads from has been lowered before.
  func::FuncOp source = findTask(edge.getSourceAttr());
  return shared.lowering.getPlace(
      source.front().getTerminator()->getOperand(edge.getResult()));
}

LogicalResult EntryLowering::lowerArgument(func::FuncOp task,
                                           BlockArgument argument,
                                           TaskBodies &bodies) {
  unsigned number = argument.getArgNumber();
  auto type = cast<RankedTensorType>(argument.getType());
  PartAttr part = getPart(type, task.getArgAttr(number, dist::kLayoutAttr));
  if (auto state =
          task.getArgAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr)) {
    shared.lowering.setPlace(
        argument, shared.getStateBuffer(state, argument.getLoc(), type, part));
    return success();
  }
  auto input = task.getArgAttrOfType<StringAttr>(number, nn::kInputAttr);
  if (!input) {
    FailureOr<Place> source = findSource(task, argument);
    if (failed(source))
      return failure();
    shared.lowering.setPlace(argument, *source);
    return success();
  }
  // What the model makes nothing of is not asked for.
  if (argument.use_empty())
    return success();
  BufferOp &buffer = inputs[input];
  bool isNew = !buffer;
  if (isNew) {
    buffer = shared.lowering.createBuffer(argument.getLoc(), input, Role::input,
                                          type);
    buffer.setPartAttr(part);
  }
  shared.lowering.setPlace(argument, buffer);
  bool isSplit = isOfOneMicroBatch(task.getArgAttr(number, dist::kLayoutAttr));
  if (!isSplit && !isNew)
    return success();
  if (isSplit)
    bodies.inputs.push_back(input);
  readInput(argument.getLoc(), input, type, part,
            isSplit ? bodies.read : bodies.readOnce, isSplit);
  return success();
}

/// Reads an input's buffer in `body`, or copies it there from where the target
/// wants it at the start of the call.
void EntryLowering::readInput(Location loc, StringAttr input,
                              RankedTensorType type, PartAttr part, BodyOp body,
                              bool isSplit) {
  ViewAttr target = Lowering::getView(Lowering::getWhole(inputs[input], type));
  OpBuilder builder = OpBuilder::atBlockEnd(&body.getBody().front());
  if (!shared.target.getFileSpace()) {
    ReadOp::create(builder, loc, Source::input, input, part, target,
                   /*each_micro_batch=*/false, kComputeStream);
    return;
  }
  auto [staged, isNew] = read.try_emplace(input);
  bool ofEach = isSplit && countMicroBatches() > 1;
  if (isNew)
    staged->second = createStaged(loc, (input.getValue() + ".read").str(),
                                  Role::input, type, ofEach);
  auto copy =
      CopyOp::create(builder, loc, Lowering::getView(staged->second.own),
                     target, kComputeStream);
  copy->setAttr(kInsertedByAttr, builder.getStringAttr("local-lower-to-plan"));
  if (!isNew)
    return;
  if (!reads)
    reads = createBody("read_inputs");
  OpBuilder atStart = OpBuilder::atBlockEnd(&reads.getBody().front());
  ReadOp::create(atStart, loc, Source::input, input, part,
                 Lowering::getView(staged->second.all), ofEach, kComputeStream);
}

int64_t EntryLowering::countMicroBatches() {
  return schedule ? int64_t(schedule.getMicroBatches()) : 1;
}

/// Of each micro-batch a tensor lies behind the one before it, so that one
/// command moves all of them, and a run finds its own by its number.
EntryLowering::Staged EntryLowering::createStaged(Location loc, StringRef name,
                                                  Role role,
                                                  RankedTensorType type,
                                                  bool ofEach) {
  SmallVector<int64_t> shape(type.getShape());
  if (ofEach)
    shape.insert(shape.begin(), countMicroBatches());
  auto all = RankedTensorType::get(shape, type.getElementType());
  BufferOp buffer = shared.lowering.createBuffer(
      loc, name, role, *shared.target.getFileSpace(), all);
  Staged staged{Lowering::getWhole(buffer, type),
                Lowering::getWhole(buffer, all)};
  int64_t bytes = Lowering::getView(staged.own).getSpanBytes();
  if (ofEach && bytes > 0)
    staged.own.axes = {AxisStrideAttr::get(
        type.getContext(), dist::MeshOp::kMicroBatchAxis, bytes)};
  return staged;
}

LogicalResult EntryLowering::writeOutputs(func::FuncOp task,
                                          TaskBodies &bodies) {
  auto results = cast<func::ReturnOp>(task.front().getTerminator());
  for (auto [number, value] : llvm::enumerate(results.getOperands())) {
    auto output = task.getResultAttrOfType<StringAttr>(number, nn::kOutputAttr);
    if (!output) {
      if (task == entry && !task.getResultAttr(number, nn::kStateAttr))
        return entry.emitOpError() << "expected result " << number
                                   << " to carry '" << nn::kOutputAttr << "'";
      continue;
    }
    Location loc = value.getLoc();
    Place place = shared.lowering.getContiguous(value, loc);
    bool ofEach = false;
    if (shared.target.getFileSpace()) {
      ofEach = repeated.contains(FlatSymbolRefAttr::get(task));
      Staged staged = createStaged(
          loc, (place.buffer.getSymName() + ".written").str(), Role::output,
          cast<RankedTensorType>(value.getType()), ofEach);
      auto copy = CopyOp::create(shared.commands, loc, Lowering::getView(place),
                                 Lowering::getView(staged.own), kComputeStream);
      copy->setAttr(kInsertedByAttr,
                    shared.commands.getStringAttr("local-lower-to-plan"));
      place = staged.all;
    } else if (place.buffer.getRole() == Role::state && writesStates)
      place = shared.lowering.copy(place, loc, Role::output);
    if (place.buffer.getRole() == Role::activation)
      place.buffer.setRole(Role::output);
    BodyOp &write = shared.target.getFileSpace() ? writes : bodies.write;
    if (!write)
      write = createBody("write_outputs");
    OpBuilder builder = OpBuilder::atBlockEnd(&write.getBody().front());
    WriteOp::create(builder, loc, Source::output, output.getValue(),
                    getPart(cast<RankedTensorType>(value.getType()),
                            task.getResultAttr(number, dist::kLayoutAttr)),
                    Lowering::getView(place), ofEach, kComputeStream);
  }
  return success();
}

/// What a task hands on of a state as it is, it copies where the state gets
/// another value before it is read. (Of a message the reader is right behind
/// the tasks that run with this one.)
void EntryLowering::keepOldStates(func::FuncOp task) {
  if (!schedule)
    return;
  auto name = FlatSymbolRefAttr::get(task);
  size_t source = numbers.lookup(name);
  for (auto edge : schedule.getOps<dist::EdgeOp>()) {
    if (edge.getSourceAttr() != name)
      continue;
    Value value = task.front().getTerminator()->getOperand(edge.getResult());
    Place place = shared.lowering.getPlace(value);
    std::optional<StringRef> state = place.buffer.getSource();
    if (place.buffer.getRole() != Role::state || !state)
      continue;
    bool isMessage = !isOwn(edge.getTargetAttr());
    auto isOverwritten = [&](FlatSymbolRefAttr writer) {
      return isMessage ? transfers.areTogether(name, writer)
                       : numbers.lookup(writer) >= source &&
                             numbers.lookup(writer) <
                                 numbers.lookup(edge.getTargetAttr());
    };
    if (llvm::any_of(writers[*state], isOverwritten))
      shared.lowering.setPlace(
          value, shared.lowering.copy(
                     place, value.getLoc(), Role::activation,
                     isMessage ? shared.target.getExchangeSpace()
                               : shared.target.getSpace(Role::activation)));
  }
}

LogicalResult EntryLowering::lowerResults(func::FuncOp task,
                                          TaskBodies &bodies) {
  auto results = cast<func::ReturnOp>(task.front().getTerminator());
  auto stateOf = [&](unsigned number) {
    return task.getResultAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr);
  };
  // First what is read of old values, then the new ones.
  keepOldStates(task);
  if (failed(writeOutputs(task, bodies)) ||
      failed(transfers.send(task, bodies.body)))
    return failure();
  SmallVector<std::pair<unsigned, Place>> written;
  for (auto [number, value] : llvm::enumerate(results.getOperands())) {
    if (!stateOf(number))
      continue;
    SplatElementsAttr splat;
    if (matchPattern(value, m_Constant(&splat))) {
      written.push_back({number, {}});
      continue;
    }
    Place place = shared.lowering.getPlace(value);
    auto own = shared.states.find(stateOf(number).getValue());
    if (place.buffer.getRole() == Role::state &&
        (own == shared.states.end() || own->second != place.buffer))
      place = shared.lowering.copy(place, value.getLoc(), Role::activation);
    written.push_back({number, place});
  }
  for (auto &[number, place] : written) {
    Value value = results.getOperand(number);
    auto type = cast<RankedTensorType>(value.getType());
    BufferOp buffer = shared.getStateBuffer(
        stateOf(number), value.getLoc(), type,
        getPart(type, task.getResultAttr(number, dist::kLayoutAttr)));
    ViewAttr target = Lowering::getView(Lowering::getWhole(buffer, type));
    SplatElementsAttr splat;
    if (!place.buffer) {
      matchPattern(value, m_Constant(&splat));
      FillOp::create(shared.commands, value.getLoc(),
                     splat.getSplatValue<TypedAttr>(), target, kComputeStream);
    } else if (place.buffer != buffer) {
      auto copy =
          CopyOp::create(shared.commands, value.getLoc(),
                         Lowering::getView(place), target, kComputeStream);
      copy->setAttr(kInsertedByAttr,
                    shared.commands.getStringAttr("local-lower-to-plan"));
    }
  }
  return success();
}

void EntryLowering::findReaders() {
  llvm::StringMap<int64_t> current; // the micro-batch that a buffer has
  auto runTask = [&](dist::RunOp run, int64_t turn) {
    TaskBodies &bodies = tasks[run.getTaskAttr().getAttr()];
    int64_t microBatch = static_cast<int64_t>(run.getOffset()) + turn;
    for (StringRef input : bodies.inputs) {
      auto [found, isNew] = current.try_emplace(input, microBatch);
      bodies.reads |= !bodies.kept.contains(input) &&
                      (isNew || found->second != microBatch);
      found->second = microBatch;
    }
  };
  for (Operation &op : stage.getBody().front()) {
    if (auto run = dyn_cast<dist::RunOp>(op))
      runTask(run, 0);
    else if (auto loop = dyn_cast<dist::LoopOp>(op))
      for (int64_t turn = 0; turn < static_cast<int64_t>(loop.getTrips());
           ++turn)
        for (auto run : loop.getOps<dist::RunOp>())
          runTask(run, turn);
  }
}

LogicalResult EntryLowering::writeRunList(EntryOp call) {
  RunListWriter list(call, shared.target);
  list.run(reads, 0);
  if (!schedule) {
    TaskBodies &bodies = tasks.front().second;
    bodies.reads = true;
    list.run(bodies, 0);
    list.run(writes, 0);
    return success();
  }
  if (transfers.hasQueued())
    unrollExchanging(stage); // messages have places between turns
  stage.walk([&](dist::RunOp run) {
    tasks[run.getTaskAttr().getAttr()].runs += run.getTurn() ? 2 : 1;
  });
  for (auto edge : schedule.getOps<dist::EdgeOp>()) {
    if (!isOwn(edge.getSourceAttr()) || !isOwn(edge.getTargetAttr()))
      continue;
    TaskBodies &from = tasks[edge.getSourceAttr().getAttr()],
               &to = tasks[edge.getTargetAttr().getAttr()];
    if ((from.runs > 1) == (to.runs > 1))
      to.kept.insert_range(from.inputs);
  }
  findReaders();
  LogicalResult result = success();
  auto runTask = [&](dist::RunOp run) {
    if (succeeded(result))
      result = transfers.addBefore(run, list);
    list.run(tasks[run.getTaskAttr().getAttr()], run.getOffset());
  };
  for (Operation &op : stage.getBody().front()) {
    if (auto run = dyn_cast<dist::RunOp>(op)) {
      transfers.goOnTo(run, list);
      runTask(run);
    } else if (auto loop = dyn_cast<dist::LoopOp>(op)) {
      transfers.goOnTo(*loop.getOps<dist::RunOp>().begin(), list);
      for (auto run : loop.getOps<dist::RunOp>())
        list.readOnce(tasks[run.getTaskAttr().getAttr()]);
      list.loop(loop.getTrips(),
                [&] { llvm::for_each(loop.getOps<dist::RunOp>(), runTask); });
    }
  }
  transfers.goOnTo({}, list);
  list.run(writes, 0);
  // Where others have read a task's inputs before it, nothing reads them again.
  for (auto &[name, bodies] : tasks)
    if (bodies.read &&
        SymbolTable::symbolKnownUseEmpty(bodies.read, shared.program))
      bodies.read.erase();
  return result;
}
