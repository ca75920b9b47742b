// Lowers an entry of `local` to a plan program: a body per task, run as its
// schedule says. States are read at load, inputs before a task, outputs written
// after it.

#include "Lowering.h"
#include "accel/Plan/Passes.h"
#include "accel/Target/TargetTable.h"
#include "dialects/Dist/Dist.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_LOWERTOPLANPASS
#include "accel/Plan/Passes.h.inc"

namespace {
/// The blocks of commands of one task.
struct TaskBodies {
  BodyOp read, body, write; // null where there is nothing to do
  SmallVector<StringRef> inputs;
  /// Inputs that a task has read which gives it values of the same micro-batch:
  /// their buffers keep them as long.
  llvm::StringSet<> kept;
  unsigned runs = 0; ///< a loop's counts twice
};

template <typename Op, typename... Args>
Op createContainer(OpBuilder &builder, Location loc, Args &&...args) {
  auto op = Op::create(builder, loc, std::forward<Args>(args)...);
  op.getBody().emplaceBlock();
  return op;
}

/// One entry and the tasks that its schedule runs.
class EntryLowering {
public:
  EntryLowering(ModuleOp module, func::FuncOp entry, dist::ScheduleOp schedule,
                const Target &target)
      : module(module), entry(entry), schedule(schedule), target(target),
        context(module.getContext()), commands(context), symbols(module) {}
  LogicalResult run();

private:
  void createProgram();
  BodyOp createBody(StringRef name);
  LogicalResult lowerTask(func::FuncOp task);
  LogicalResult lowerArgument(func::FuncOp task, BlockArgument argument,
                              TaskBodies &bodies);
  LogicalResult lowerResults(func::FuncOp task, TaskBodies &bodies);
  BufferOp getStateBuffer(FlatSymbolRefAttr state, Location loc,
                          RankedTensorType type, PartAttr part);
  /// The verifier has seen that the schedule's tasks are there.
  func::FuncOp findTask(FlatSymbolRefAttr name) {
    return symbols.lookup<func::FuncOp>(name.getAttr());
  }
  Value findSource(func::FuncOp task, unsigned argument);
  PartAttr getPart(RankedTensorType type, Attribute layout);
  void createEntries();

  ModuleOp module;
  func::FuncOp entry;
  dist::ScheduleOp schedule;
  const Target &target;
  MLIRContext *context;
  OpBuilder commands;
  SymbolTable symbols; ///< of the module, before the program is in it
  /// By task and argument.
  llvm::DenseMap<std::pair<Attribute, unsigned>, dist::EdgeOp> edges;
  ProgramOp program;
  EntryOp loadEntry, callEntry;
  BodyOp load;
  std::optional<Lowering> lowering;
  llvm::StringMap<BufferOp> states, inputs;
  llvm::MapVector<StringAttr, TaskBodies> tasks;
  bool writesStates = false;
};

struct LowerToPlanPass : impl::LowerToPlanPassBase<LowerToPlanPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<func::FuncOp> entries;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(nn::kEntryAttr))
        entries.push_back(function);
    if (entries.size() != 1) {
      getOperation().emitError()
          << "expected one function with '" << nn::kEntryAttr << "', found "
          << entries.size();
      return signalPassFailure();
    }
    dist::ScheduleOp schedule;
    for (auto each : getOperation().getOps<dist::ScheduleOp>())
      if (each.getEntry() == entries.front().getSymName())
        schedule = each;
    if (!schedule && entries.front().isExternal()) {
      entries.front().emitOpError() << "expected a schedule that runs it";
      return signalPassFailure();
    }
    FailureOr<const Target *> chosen = findTarget(getOperation(), target);
    if (failed(chosen) || failed(EntryLowering(getOperation(), entries.front(),
                                               schedule, **chosen)
                                     .run()))
      return signalPassFailure();
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (function->hasAttr(dist::kTaskAttr) ||
          function->hasAttr(nn::kEntryAttr))
        function.erase();
    for (auto each :
         llvm::make_early_inc_range(getOperation().getOps<dist::ScheduleOp>()))
      each.erase();
  }
};
} // namespace

LogicalResult EntryLowering::run() {
  createProgram();
  if (schedule && !llvm::hasSingleElement(schedule.getOps<dist::StageOp>()))
    return schedule.emitOpError() << "expected one stage";
  llvm::SetVector<Operation *> order;
  if (!schedule) {
    order.insert(entry); // a test's: a function run once
  } else {
    for (auto edge : schedule.getOps<dist::EdgeOp>())
      edges.try_emplace({edge.getTargetAttr(), edge.getArgument()}, edge);
    schedule.walk(
        [&](dist::RunOp run) { order.insert(findTask(run.getTaskAttr())); });
  }
  for (Operation *task : order)
    if (failed(lowerTask(cast<func::FuncOp>(task))))
      return failure();
  createEntries();
  return success();
}

void EntryLowering::createProgram() {
  OpBuilder builder(entry);
  int64_t ranks = 1;
  FlatSymbolRefAttr meshName;
  for (auto mesh : module.getOps<dist::MeshOp>()) {
    meshName = FlatSymbolRefAttr::get(mesh.getSymNameAttr());
    ranks = mesh.getRankCount();
  }
  program =
      createContainer<ProgramOp>(builder, entry.getLoc(), entry.getSymName(),
                                 /*stage=*/0, ranks, meshName);
  for (unsigned index = 0; index < entry.getNumResults(); ++index)
    writesStates |= bool(entry.getResultAttr(index, nn::kStateAttr));
  // These names are known to the runtime; buffers and bodies give way.
  builder.setInsertionPointToEnd(&program.getBody().front());
  loadEntry = createContainer<EntryOp>(builder, entry.getLoc(), "load");
  callEntry = createContainer<EntryOp>(builder, entry.getLoc(),
                                       writesStates ? "step" : "main");
  lowering.emplace(program, symbols, target, commands);
  load = createBody("load_states");
}

/// A body at the end of the program, its name made unique.
BodyOp EntryLowering::createBody(StringRef name) {
  OpBuilder builder = OpBuilder::atBlockEnd(&program.getBody().front());
  std::string unique = name.str();
  for (int next = 0; program.lookupSymbol(unique); ++next)
    unique = (name + "_" + Twine(next)).str();
  return createContainer<BodyOp>(builder, entry.getLoc(), unique,
                                 target.getEngine());
}

LogicalResult EntryLowering::lowerTask(func::FuncOp task) {
  if (task.isExternal() || !task.getBody().hasOneBlock())
    return task.emitOpError() << "expected a function of one block";
  auto kind = task->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr);
  TaskBodies &bodies = tasks[task.getSymNameAttr()];
  // Reading comes first in the text as well.
  for (unsigned index = 0; index < task.getNumArguments(); ++index)
    if (task.getArgAttr(index, nn::kInputAttr)) {
      bodies.read = createBody("read_inputs");
      break;
    }
  bodies.body = createBody(kind ? dist::stringifyTaskKind(kind.getKind())
                                : StringRef("forward"));
  commands.setInsertionPointToEnd(&bodies.body.getBody().front());
  for (BlockArgument argument : task.getArguments())
    if (failed(lowerArgument(task, argument, bodies)))
      return failure();
  for (Operation &op : task.front().without_terminator())
    if (failed(lowering->lower(&op)))
      return failure();
  return lowerResults(task, bodies);
}

/// Which piece of a logical tensor an argument or result of `type` is.
PartAttr EntryLowering::getPart(RankedTensorType type, Attribute layoutAttr) {
  Builder builder(context);
  if (auto layout = dyn_cast_or_null<dist::LayoutAttr>(layoutAttr)) {
    SmallVector<Attribute> dims;
    for (dist::AxesAttr axes : layout.getDims()) {
      SmallVector<Attribute> names;
      for (StringAttr name : axes.getNames())
        names.push_back(name);
      dims.push_back(builder.getArrayAttr(names));
    }
    return PartAttr::get(context, layout.getShape(),
                         builder.getArrayAttr(dims));
  }
  SmallVector<Attribute> axes(type.getRank(), builder.getArrayAttr({}));
  return PartAttr::get(context, type.getShape(), builder.getArrayAttr(axes));
}

/// A state has one buffer, whichever tasks read and write it; its first value
/// is read at load.
BufferOp EntryLowering::getStateBuffer(FlatSymbolRefAttr state, Location loc,
                                       RankedTensorType type, PartAttr part) {
  BufferOp &buffer = states[state.getValue()];
  if (buffer)
    return buffer;
  buffer = lowering->createBuffer(loc, state.getValue(), Role::state,
                                  Space::device, type);
  buffer.setPartAttr(part);
  buffer.setSourceAttr(state);
  OpBuilder builder = OpBuilder::atBlockEnd(&load.getBody().front());
  ReadOp::create(builder, loc, Source::state, state.getValue(), part,
                 Lowering::getView(Lowering::getWhole(buffer, type)),
                 "compute");
  return buffer;
}

/// The value that an edge carries to an argument of a task.
Value EntryLowering::findSource(func::FuncOp task, unsigned argument) {
  auto name = FlatSymbolRefAttr::get(task.getSymNameAttr());
  dist::EdgeOp edge = edges.lookup({name, argument});
  if (!edge)
    return {};
  func::FuncOp source = findTask(edge.getSourceAttr());
  return source.front().getTerminator()->getOperand(edge.getResult());
}

LogicalResult EntryLowering::lowerArgument(func::FuncOp task,
                                           BlockArgument argument,
                                           TaskBodies &bodies) {
  unsigned number = argument.getArgNumber();
  auto type = cast<RankedTensorType>(argument.getType());
  PartAttr part = getPart(type, task.getArgAttr(number, dist::kLayoutAttr));
  if (auto state =
          task.getArgAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr)) {
    lowering->setPlace(argument,
                       getStateBuffer(state, argument.getLoc(), type, part));
    return success();
  }
  auto input = task.getArgAttrOfType<StringAttr>(number, nn::kInputAttr);
  if (!input) {
    Value source = findSource(task, number);
    if (!source)
      return task.emitOpError() << "expected argument " << number
                                << " to carry '" << nn::kStateAttr << "' or '"
                                << nn::kInputAttr << "', or an edge to it";
    // A task that another one reads from has been lowered before.
    lowering->setPlace(argument, lowering->getPlace(source));
    return success();
  }
  BufferOp &buffer = inputs[input];
  if (!buffer) {
    buffer = lowering->createBuffer(argument.getLoc(), input, Role::input,
                                    Space::device, type);
    buffer.setPartAttr(part);
  }
  lowering->setPlace(argument, buffer);
  bodies.inputs.push_back(input);
  OpBuilder builder = OpBuilder::atBlockEnd(&bodies.read.getBody().front());
  ReadOp::create(builder, argument.getLoc(), Source::input, input, part,
                 Lowering::getView(lowering->getPlace(argument)), "compute");
  return success();
}

LogicalResult EntryLowering::lowerResults(func::FuncOp task,
                                          TaskBodies &bodies) {
  auto results = cast<func::ReturnOp>(task.front().getTerminator());
  auto stateOf = [&](unsigned number) {
    return task.getResultAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr);
  };
  // First what is read of old values, then the new ones.
  for (auto [number, value] : llvm::enumerate(results.getOperands())) {
    auto output = task.getResultAttrOfType<StringAttr>(number, nn::kOutputAttr);
    if (!output) {
      if (task == entry && !stateOf(number))
        return entry.emitOpError() << "expected result " << number
                                   << " to carry '" << nn::kOutputAttr << "'";
      continue;
    }
    Location loc = value.getLoc();
    Place place = lowering->getContiguous(value, loc);
    if (place.buffer.getRole() == Role::state && writesStates)
      place = lowering->copy(place, loc, Role::output, Space::device);
    if (place.buffer.getRole() == Role::activation)
      place.buffer.setRole(Role::output);
    if (!bodies.write)
      bodies.write = createBody("write_outputs");
    OpBuilder builder = OpBuilder::atBlockEnd(&bodies.write.getBody().front());
    WriteOp::create(builder, loc, Source::output, output.getValue(),
                    getPart(cast<RankedTensorType>(value.getType()),
                            task.getResultAttr(number, dist::kLayoutAttr)),
                    Lowering::getView(place), "compute");
  }
  SmallVector<std::pair<unsigned, Place>> written;
  for (auto [number, value] : llvm::enumerate(results.getOperands())) {
    if (!stateOf(number))
      continue;
    SplatElementsAttr splat;
    if (matchPattern(value, m_Constant(&splat))) {
      written.push_back({number, {}});
      continue;
    }
    Place place = lowering->getPlace(value);
    auto own = states.find(stateOf(number).getValue());
    if (place.buffer.getRole() == Role::state &&
        (own == states.end() || own->second != place.buffer))
      place = lowering->copy(place, value.getLoc(), Role::activation,
                             Space::device);
    written.push_back({number, place});
  }
  for (auto &[number, place] : written) {
    Value value = results.getOperand(number);
    auto type = cast<RankedTensorType>(value.getType());
    BufferOp buffer = getStateBuffer(
        stateOf(number), value.getLoc(), type,
        getPart(type, task.getResultAttr(number, dist::kLayoutAttr)));
    ViewAttr target = Lowering::getView(Lowering::getWhole(buffer, type));
    SplatElementsAttr splat;
    if (!place.buffer) {
      matchPattern(value, m_Constant(&splat));
      FillOp::create(commands, value.getLoc(), splat.getSplatValue<TypedAttr>(),
                     target, "compute");
    } else if (place.buffer != buffer) {
      auto copy = CopyOp::create(commands, value.getLoc(),
                                 Lowering::getView(place), target, "compute");
      copy->setAttr(kInsertedByAttr,
                    commands.getStringAttr("local-lower-to-plan"));
    }
  }
  return success();
}

namespace {
/// Writes a run list: reading and writing files cannot be captured in a graph,
/// what stands between can.
class RunListWriter {
public:
  RunListWriter(EntryOp entry, Engine engine)
      : entry(entry), engine(engine), list(&entry.getBody()) {}

  void run(BodyOp body, int64_t offset, bool capturable) {
    if (!body)
      return;
    if (!segment || !capturable || !segment.getCapturable()) {
      OpBuilder inner = OpBuilder::atBlockEnd(&list->front());
      segment =
          createContainer<SegmentOp>(inner, entry.getLoc(), engine, capturable);
    }
    OpBuilder runs = OpBuilder::atBlockEnd(&segment.getBody().front());
    RunOp::create(runs, entry.getLoc(), body.getSymName(), offset,
                  /*turn=*/list != &entry.getBody());
  }

  /// A task's bodies; inputs are read where their buffers have those of another
  /// micro-batch.
  void run(TaskBodies &bodies, int64_t offset) {
    if (llvm::any_of(bodies.inputs, [&](StringRef input) {
          auto found = current.find(input);
          return !bodies.kept.contains(input) &&
                 (found == current.end() || found->second != offset);
        }))
      run(bodies.read, offset, /*capturable=*/false);
    for (StringRef input : bodies.inputs)
      current[input] = offset;
    run(bodies.body, offset, /*capturable=*/true);
    run(bodies.write, offset, /*capturable=*/false);
  }

  /// What `runs` adds repeats. What inputs' buffers have when a turn begins,
  /// its text does not know: the first turn finds another micro-batch than the
  /// rest.
  void loop(int64_t trips, llvm::function_ref<void()> runs) {
    OpBuilder inner = OpBuilder::atBlockEnd(&list->front());
    auto loop = createContainer<LoopOp>(inner, entry.getLoc(), trips);
    segment = {};
    current.clear();
    list = &loop.getBody();
    runs();
    list = &entry.getBody();
    segment = {};
    for (auto &input : current)
      input.second += trips - 1; // as the last turn leaves it
  }

private:
  EntryOp entry;
  Engine engine;
  Region *list;      ///< the entry's, or that of the loop at hand
  SegmentOp segment; ///< that is still open
  /// The micro-batch that an input's buffer has; in a loop, beyond the turn.
  llvm::StringMap<int64_t> current;
};
} // namespace

void EntryLowering::createEntries() {
  Block &block = program.getBody().front();
  for (EntryOp each : {loadEntry, callEntry})
    each->moveBefore(&block, block.end());
  RunListWriter(loadEntry, target.getEngine())
      .run(load, 0, /*capturable=*/false);
  RunListWriter list(callEntry, target.getEngine());
  if (!schedule)
    return list.run(tasks.front().second, 0);
  schedule.walk([&](dist::RunOp run) {
    tasks[run.getTaskAttr().getAttr()].runs += run.getTurn() ? 2 : 1;
  });
  for (auto edge : schedule.getOps<dist::EdgeOp>()) {
    TaskBodies &from = tasks[edge.getSourceAttr().getAttr()],
               &to = tasks[edge.getTargetAttr().getAttr()];
    if ((from.runs > 1) == (to.runs > 1))
      to.kept.insert_range(from.inputs);
  }
  auto runTask = [&](dist::RunOp run) {
    list.run(tasks[run.getTaskAttr().getAttr()], run.getOffset());
  };
  auto stage = *schedule.getOps<dist::StageOp>().begin();
  for (Operation &op : stage.getBody().front()) {
    if (auto run = dyn_cast<dist::RunOp>(op))
      runTask(run);
    else if (auto loop = dyn_cast<dist::LoopOp>(op))
      list.loop(loop.getTrips(),
                [&] { llvm::for_each(loop.getOps<dist::RunOp>(), runTask); });
  }
  // Where others have read a task's inputs before it, nothing reads them again.
  for (auto &[name, bodies] : tasks)
    if (bodies.read && SymbolTable::symbolKnownUseEmpty(bodies.read, program))
      bodies.read.erase();
}
} // namespace accel::plan
