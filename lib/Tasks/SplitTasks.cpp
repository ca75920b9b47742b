// Builds the tasks of a step and the schedule that runs them.

#include "Passes.h"
#include "TaskHomes.h"
#include "dialects/Accel/Accel.h"
#include "dialects/Dist/ScheduleKind.h"
#include "dialects/NN/Entry.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace accel::tasks {
#define GEN_PASS_DEF_SPLITTASKSPASS
#include "lib/Tasks/Passes.h.inc"

namespace {
/// A task under construction: arguments and results are added as they turn out
/// to be needed.
struct Task {
  func::FuncOp function;
  IRMapping mapping; // from values of the entry
  llvm::StringMap<Value> states;
  SmallVector<Attribute> argumentAttrs, resultAttrs;
  SmallVector<Value> results;
  llvm::DenseMap<Value, unsigned> kept; // results that others read

  Block &block() { return function.front(); }
  Value addArgument(Type type, Location loc, DictionaryAttr attributes) {
    argumentAttrs.push_back(attributes);
    return block().addArgument(type, loc);
  }
  unsigned addResult(Value value, DictionaryAttr attributes) {
    results.push_back(value);
    resultAttrs.push_back(attributes);
    return results.size() - 1;
  }
};

struct Edge {
  Home source, target;
  unsigned result, argument;
  Location loc; ///< of the value
};

class Splitter {
public:
  Splitter(func::FuncOp entry, dist::MeshOp mesh, const TaskHomes &homes,
           dist::ScheduleKind kind, SymbolTable &symbols)
      : entry(entry), mesh(mesh), homes(homes), kind(kind), symbols(symbols),
        context(entry.getContext()) {}
  void run();

private:
  Task &taskOf(Home home) { return tasks[static_cast<int>(home)]; }
  void createTasks();
  void add(const Reduction &reduction);
  Value getAccumulator(Task &task, const Reduction &reduction);
  Value get(Home home, Value value);
  void clone(Home home, Operation *op);
  void giveResults();
  void finishTasks();
  void createSchedule();

  func::FuncOp entry;
  dist::MeshOp mesh;
  const TaskHomes &homes;
  dist::ScheduleKind kind;
  SymbolTable &symbols;
  MLIRContext *context;
  Task tasks[kHomes];
  SmallVector<Edge> edges;
};
} // namespace

/// Whether a task runs for each micro-batch.
static bool isInLoop(Home home) {
  return home != Home::Prepare && home != Home::Update;
}

static constexpr dist::TaskKind kKinds[kHomes] = {
    dist::TaskKind::count, dist::TaskKind::prepare, dist::TaskKind::forward,
    dist::TaskKind::backward, dist::TaskKind::update};

static Home homeOf(dist::TaskKind kind) {
  return static_cast<Home>(llvm::find(kKinds, kind) - std::begin(kKinds));
}

void Splitter::run() {
  createTasks();
  for (Operation &op : entry.front().without_terminator()) {
    if (TaskHomes::isFree(&op) || isa<nn::GradientOp>(op))
      continue; // where something reads it
    auto reduction = homes.getReductions().find(&op);
    if (reduction != homes.getReductions().end()) {
      if (homes.isLive(&op))
        add(reduction->second);
      continue;
    }
    if (homes.isCounted(&op))
      clone(Home::Count, &op);
    if (homes.isLive(&op))
      clone(homes.getHome(op.getResult(0)), &op);
  }
  giveResults();
  finishTasks();
  createSchedule();
  // What remains of the entry is what the program takes and gives.
  entry.getBody().dropAllReferences();
  entry.getBody().getBlocks().clear();
  entry.setPrivate();
}

void Splitter::createTasks() {
  OpBuilder builder(context);
  // A step's have the plain names.
  bool isStep = nn::getEntryKind(entry) == nn::EntryKind::step;
  std::string prefix = isStep ? "" : (entry.getSymName() + "_").str();
  for (int home = 0; home < kHomes; ++home) {
    Task &task = tasks[home];
    StringRef name = dist::stringifyTaskKind(kKinds[home]);
    task.function =
        func::FuncOp::create(builder, entry.getLoc(), (prefix + name).str(),
                             builder.getFunctionType({}, {}));
    task.function.setPrivate();
    task.function.addEntryBlock();
    task.function->setAttr(dist::kTaskAttr,
                           dist::TaskAttr::get(context, kKinds[home],
                                               /*stage=*/0, /*chunk=*/0));
  }
}

/// The attributes of an argument that stands for an accumulator, or of a result
/// that writes it.
static DictionaryAttr getAttrs(dist::AccumulateOp op,
                               std::optional<nn::WriteKind> write = {}) {
  Builder builder(op.getContext());
  NamedAttrList attributes;
  attributes.set(dist::kLayoutAttr, op.getLayoutAttr());
  attributes.set(nn::kStateAttr, op.getStateAttr());
  if (write && *write != nn::WriteKind::step)
    attributes.set(nn::kWriteAttr,
                   nn::WriteKindAttr::get(op.getContext(), *write));
  return attributes.getDictionary(op.getContext());
}

Value Splitter::getAccumulator(Task &task, const Reduction &reduction) {
  Value &value = task.states[reduction.op.getState()];
  if (!value)
    value = task.addArgument(reduction.op.getType(), reduction.op.getLoc(),
                             getAttrs(reduction.op));
  return value;
}

void Splitter::add(const Reduction &reduction) {
  Task &task = taskOf(reduction.adds);
  dist::AccumulateOp op = reduction.op;
  Value term = get(reduction.adds, op.getInput());
  Value before = getAccumulator(task, reduction);
  // As soon as it can be: what the term is made of need not live until the end.
  OpBuilder builder = OpBuilder::atBlockEnd(&task.block());
  if (Operation *made = term.getDefiningOp())
    builder.setInsertionPointAfter(made);
  switch (op.getKind()) {
  case dist::Reduction::sum:
    task.addResult(nn::AddOp::create(builder, op.getLoc(), before, term),
                   getAttrs(op, nn::WriteKind::accumulate_sum));
    return;
  case dist::Reduction::max:
    task.addResult(nn::MaxOp::create(builder, op.getLoc(), before, term),
                   getAttrs(op, nn::WriteKind::accumulate_max));
    return;
  case dist::Reduction::min:
    task.addResult(nn::MinOp::create(builder, op.getLoc(), before, term),
                   getAttrs(op, nn::WriteKind::accumulate_min));
    return;
  }
}

Value Splitter::get(Home home, Value value) {
  Task &task = taskOf(home);
  if (Value known = task.mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  Value made;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    made = task.addArgument(value.getType(), value.getLoc(),
                            entry.getArgAttrDict(argument.getArgNumber()));
  } else if (auto gradient = dyn_cast<nn::GradientOp>(op)) {
    made = get(home, gradient.getInput());
  } else if (TaskHomes::isFree(op) || homes.isWidenedAgain(op, home) ||
             (homes.isRepeated(op) && !isInLoop(home))) {
    clone(home, op);
    return task.mapping.lookup(value);
  } else {
    auto reduction = homes.getReductions().find(op);
    bool isSum = reduction != homes.getReductions().end();
    Home source = isSum ? reduction->second.reads : homes.getHome(value);
    if (isSum && source == home) {
      made = getAccumulator(task, reduction->second);
    } else {
      Task &from = taskOf(source);
      Value kept = get(source, value);
      auto [found, isNew] = from.kept.try_emplace(value, from.results.size());
      if (isNew)
        from.addResult(kept, DictionaryAttr::get(context));
      unsigned number = task.block().getNumArguments();
      made = task.addArgument(value.getType(), value.getLoc(),
                              DictionaryAttr::get(context));
      edges.push_back({source, home, found->second, number, value.getLoc()});
    }
  }
  task.mapping.map(value, made);
  return made;
}

void Splitter::clone(Home home, Operation *op) {
  Task &task = taskOf(home);
  for (Value operand : op->getOperands())
    get(home, operand);
  OpBuilder builder = OpBuilder::atBlockEnd(&task.block());
  builder.clone(*op, task.mapping);
}

void Splitter::giveResults() {
  auto exit = cast<func::ReturnOp>(entry.front().getTerminator());
  for (OpOperand &operand : exit->getOpOperands()) {
    Value value = operand.get();
    DictionaryAttr attributes =
        entry.getResultAttrDict(operand.getOperandNumber());
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && attributes.get(nn::kStateAttr))
      continue; // stays as it is
    // Another way to read something is given by the task that has this.
    Value source = value;
    for (Operation *op = source.getDefiningOp();
         op && TaskHomes::isFree(op) && op->getNumOperands() == 1;
         op = source.getDefiningOp())
      source = op->getOperand(0);
    auto reduction = homes.getReductions().find(source.getDefiningOp());
    Home home = reduction != homes.getReductions().end()
                    ? reduction->second.reads
                    : homes.getHome(source);
    taskOf(home).addResult(get(home, value), attributes);
  }
  // Between steps accumulators hold what changes nothing.
  Task &update = taskOf(Home::Update);
  for (auto &[op, reduction] : homes.getReductions()) {
    if (!homes.isLive(op))
      continue; // nothing needs it
    auto type = cast<RankedTensorType>(reduction.op.getType());
    Attribute identity =
        dist::getIdentity(reduction.op.getKind(), type.getElementType());
    OpBuilder builder = OpBuilder::atBlockEnd(&update.block());
    update.addResult(
        nn::ConstantOp::create(builder, reduction.op.getLoc(),
                               DenseElementsAttr::get(type, identity)),
        getAttrs(reduction.op, nn::WriteKind::step));
  }
}

void Splitter::finishTasks() {
  for (Task &task : tasks) {
    OpBuilder builder = OpBuilder::atBlockEnd(&task.block());
    func::ReturnOp::create(builder, entry.getLoc(), task.results);
    // The block's own reverse iterators: those of a range end at what is
    // erased.
    for (Operation &op :
         llvm::make_early_inc_range(llvm::reverse(task.block())))
      if (isOpTriviallyDead(&op))
        op.erase();
    task.function.setFunctionType(builder.getFunctionType(
        task.block().getArgumentTypes(), ValueRange(task.results).getTypes()));
    task.function.setArgAttrsAttr(builder.getArrayAttr(task.argumentAttrs));
    task.function.setResAttrsAttr(builder.getArrayAttr(task.resultAttrs));
    if (task.results.empty())
      task.function.erase();
    else
      symbols.insert(task.function);
  }
}

void Splitter::createSchedule() {
  int64_t microBatches =
      mesh.findAxisSize(dist::MeshOp::kMicroBatchAxis).value_or(1);
  OpBuilder builder(context);
  builder.setInsertionPointToEnd(entry->getBlock());
  Location loc = entry.getLoc();
  auto schedule = dist::ScheduleOp::create(
      builder, loc, (entry.getSymName() + "_schedule").str(),
      entry.getSymName(), microBatches);
  builder.createBlock(&schedule.getBody());
  auto stage = dist::StageOp::create(builder, loc, 0);
  OpBuilder list = OpBuilder::atBlockEnd(&stage.getBody().emplaceBlock());
  auto run = [&](const dist::SchedulePart &part) {
    auto isThere = [&](const dist::ScheduledTask &each) {
      return !taskOf(homeOf(each.kind)).results.empty();
    };
    if (llvm::none_of(part.tasks, isThere))
      return;
    OpBuilder runs = list;
    if (part.trips > 1) {
      auto loop = dist::LoopOp::create(list, loc, part.trips);
      runs = OpBuilder::atBlockEnd(&loop.getBody().emplaceBlock());
    }
    for (auto [kind, offset] : llvm::make_filter_range(part.tasks, isThere))
      dist::RunOp::create(runs, loc, taskOf(homeOf(kind)).function.getSymName(),
                          offset, /*turn=*/part.trips > 1);
  };
  run({microBatches, {{dist::TaskKind::count, 0}}});
  run({1, {{dist::TaskKind::prepare, 0}}});
  llvm::for_each(kind.list(microBatches), run);
  run({1, {{dist::TaskKind::update, 0}}});
  for (const Edge &edge : edges)
    dist::EdgeOp::create(
        builder, edge.loc, taskOf(edge.source).function.getSymName(),
        edge.result, taskOf(edge.target).function.getSymName(), edge.argument);
}

/// Makes an entry the only task of its schedule.
static void addSchedule(func::FuncOp entry) {
  MLIRContext *context = entry.getContext();
  entry->setAttr(dist::kTaskAttr,
                 dist::TaskAttr::get(context, dist::TaskKind::forward,
                                     /*stage=*/0, /*chunk=*/0));
  OpBuilder builder(context);
  builder.setInsertionPointAfter(entry);
  StringRef name = entry.getSymName();
  auto schedule = dist::ScheduleOp::create(builder, entry.getLoc(),
                                           (name + "_schedule").str(), name, 1);
  builder.createBlock(&schedule.getBody());
  auto stage = dist::StageOp::create(builder, entry.getLoc(), 0);
  builder.createBlock(&stage.getBody());
  dist::RunOp::create(builder, entry.getLoc(), name, /*offset=*/0,
                      /*turn=*/false);
}

namespace {
struct SplitTasksPass : impl::SplitTasksPassBase<SplitTasksPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<dist::MeshOp> mesh = dist::MeshOp::require(module);
    if (failed(mesh))
      return signalPassFailure();
    SymbolTable symbols(module);
    for (func::FuncOp entry : nn::getEntries(module))
      if (!entry.isExternal() && failed(split(entry, *mesh, symbols)))
        return signalPassFailure();
  }

  LogicalResult split(func::FuncOp entry, dist::MeshOp mesh,
                      SymbolTable &symbols) {
    int64_t microBatches =
        mesh.findAxisSize(dist::MeshOp::kMicroBatchAxis).value_or(1);
    bool isStep = nn::getEntryKind(entry) == nn::EntryKind::step;
    if (!isStep && microBatches == 1) {
      addSchedule(entry);
      return success();
    }
    FailureOr<dist::ScheduleKind> kind =
        isStep ? getDecided(entry, microBatches)
               : *dist::ScheduleKind::parse("sequential");
    if (failed(kind))
      return failure();
    FailureOr<TaskHomes> homes = TaskHomes::compute(entry, mesh);
    if (failed(homes))
      return failure();
    Splitter(entry, mesh, *homes, *kind, symbols).run();
    return success();
  }

  /// The schedule that was decided on, for a step of so many micro-batches.
  static FailureOr<dist::ScheduleKind> getDecided(func::FuncOp entry,
                                                  int64_t microBatches) {
    // Of a module that nobody has decided on: the plainest.
    auto decisions =
        entry->getParentOfType<ModuleOp>()->getAttrOfType<DictionaryAttr>(
            kDecisionsAttr);
    auto chosen = decisions ? decisions.getAs<StringAttr>("schedule") : nullptr;
    StringRef name = dist::ScheduleKind::kDefault;
    if (chosen)
      name = chosen.getValue();
    auto kind = dist::ScheduleKind::parse(name);
    if (!kind)
      return entry.emitError()
             << "expected a decided schedule " << dist::ScheduleKind::getNames()
             << ", found " << name;
    if (kind->getInFlight(microBatches) > microBatches)
      return entry.emitError()
             << "expected at least the " << kind->getInFlight(microBatches)
             << " micro-batches that schedule " << name
             << " has in flight, found " << microBatches;
    return *kind;
  }
};
} // namespace
} // namespace accel::tasks
