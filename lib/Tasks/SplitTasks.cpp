// Builds the tasks of a step, and the edges between them.

#include "Passes.h"
#include "TaskHomes.h"
#include "TaskOrder.h"
#include "dialects/NN/Entry.h"
#include "mlir/IR/IRMapping.h"
#include <map>

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
  llvm::DenseMap<Value, unsigned> kept; // results that others read, by value

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
  Place source, target;
  unsigned result, argument;
  Location loc; ///< of the value
};

class Splitter {
public:
  Splitter(func::FuncOp entry, const TaskHomes &homes, const TaskOrder &order,
           SymbolTable &symbols)
      : entry(entry), homes(homes), order(order), symbols(symbols),
        context(entry.getContext()) {}
  void run();

private:
  Task &taskOf(const Place &place);
  void add(const Reduction &reduction);
  Value getAccumulator(Task &task, const Reduction &reduction);
  Value get(const Place &at, Value value);
  Value keep(const Place &source, const Place &at, Value value, Value kept);
  void clone(const Place &at, Operation *op);
  void giveResults();
  void resetAccumulators();
  void finishTasks();
  void createSchedule();

  func::FuncOp entry;
  const TaskHomes &homes;
  const TaskOrder &order;
  SymbolTable &symbols;
  MLIRContext *context;
  std::map<Place, Task> tasks;
  SmallVector<Edge> edges;
};
} // namespace

/// Whether a task runs for each micro-batch.
static bool isInLoop(Home home) {
  return home != Home::Prepare && home != Home::Update;
}

void Splitter::run() {
  for (int home = 0; home < kHomes; ++home)
    taskOf({static_cast<Home>(home)});
  for (Operation &op : entry.front().without_terminator()) {
    if (TaskHomes::isFree(&op) || isa<nn::GradientOp, nn::CutOp>(op))
      continue; // where something reads it
    auto reduction = homes.getReductions().find(&op);
    if (reduction != homes.getReductions().end()) {
      if (homes.isLive(&op))
        add(reduction->second);
      continue;
    }
    int64_t chunk = homes.getChunk(op.getResult(0));
    if (homes.isCounted(&op))
      clone({Home::Count, chunk}, &op);
    if (homes.isLive(&op))
      clone(homes.getPlace(&op, chunk), &op);
  }
  giveResults();
  resetAccumulators();
  finishTasks();
  createSchedule();
  // What remains of the entry is what the program takes and gives.
  entry.getBody().dropAllReferences();
  entry.getBody().getBlocks().clear();
  entry.setPrivate();
}

Task &Splitter::taskOf(const Place &place) {
  auto [found, isNew] = tasks.try_emplace(place);
  Task &task = found->second;
  if (!isNew)
    return task;
  OpBuilder builder(context);
  dist::TaskAttr what = order.getTask(place);
  // A step's have the plain names.
  bool isStep = nn::getEntryKind(entry) == nn::EntryKind::step;
  std::string name = isStep ? "" : (entry.getSymName() + "_").str();
  name += dist::stringifyTaskKind(what.getKind());
  if (homes.countChunks() > 1)
    name += "_" + std::to_string(place.chunk);
  if (place.round > 0)
    name += "_round_" + std::to_string(place.round);
  task.function = func::FuncOp::create(builder, entry.getLoc(), name,
                                       builder.getFunctionType({}, {}));
  task.function.setPrivate();
  task.function.addEntryBlock();
  task.function->setAttr(dist::kTaskAttr, what);
  return task;
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
  Place at{reduction.adds, homes.getChunk(reduction.op.getResult())};
  dist::AccumulateOp op = reduction.op;
  Value term = get(at, op.getInput());
  Task &task = taskOf(at);
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

Value Splitter::get(const Place &at, Value value) {
  Task &task = taskOf(at);
  if (Value known = task.mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  Value made;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    made = task.addArgument(value.getType(), value.getLoc(),
                            entry.getArgAttrDict(argument.getArgNumber()));
  } else if (auto gradient = dyn_cast<nn::GradientOp>(op)) {
    made = get(at, gradient.getInput());
  } else if (TaskHomes::isFree(op) || homes.isWidenedAgain(op, at.home) ||
             // What is counted before the loop is counted of inputs alone.
             (at.home == Home::Count && homes.isCounted(op)) ||
             (homes.isRepeated(op) && !isInLoop(at.home) &&
              !isa<nn::CutOp>(op))) {
    clone(at, op);
    return task.mapping.lookup(value);
  } else {
    auto reduction = homes.getReductions().find(op);
    bool isSum = reduction != homes.getReductions().end();
    Place source = homes.getPlace(op, at.chunk);
    Place brought{source.home, at.chunk, 1}; // where a sum of another chunk is
    if (isSum && source.chunk != at.chunk) {
      const Place &from = at == brought ? source : brought;
      made = keep(from, at, value, get(from, value));
    } else if (isSum && source.home == at.home) {
      made = getAccumulator(task, reduction->second);
    } else if (!(source == at)) {
      made = keep(source, at, value, get(source, value));
    } else if (auto cut = dyn_cast<nn::CutOp>(op)) {
      Place from = homes.getSource(cut);
      made = keep(from, at, value, get(from, cut.getInput()));
    } else { // each chunk that reads it computes it
      clone(at, op);
      return task.mapping.lookup(value);
    }
  }
  task.mapping.map(value, made);
  return made;
}

/// An argument of the task `at` for what is `kept` of a value in `source`.
Value Splitter::keep(const Place &source, const Place &at, Value value,
                     Value kept) {
  Task &from = taskOf(source), &task = taskOf(at);
  auto [found, isNew] = from.kept.try_emplace(kept, from.results.size());
  if (isNew)
    from.addResult(kept, DictionaryAttr::get(context));
  unsigned number = task.block().getNumArguments();
  edges.push_back({source, at, found->second, number, value.getLoc()});
  return task.addArgument(value.getType(), value.getLoc(),
                          DictionaryAttr::get(context));
}

void Splitter::clone(const Place &at, Operation *op) {
  Task &task = taskOf(at);
  if (task.mapping.contains(op->getResult(0)))
    return; // somebody has read it already
  for (Value operand : op->getOperands())
    get(at, operand);
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
    Operation *op = source.getDefiningOp();
    int64_t chunk = homes.getChunk(operand);
    Place place = op && !TaskHomes::isFree(op) ? homes.getPlace(op, chunk)
                                               : Place{Home::Update, chunk};
    Value given = get(place, value);
    taskOf(place).addResult(given, attributes);
  }
}

/// Between steps accumulators hold what changes nothing: they are set back by
/// the last task of their chunk.
void Splitter::resetAccumulators() {
  for (auto &[op, reduction] : homes.getReductions()) {
    if (!homes.isLive(op))
      continue; // nothing needs it
    Place last{Home::Update, homes.getChunk(op->getResult(0))};
    for (auto &[place, task] : tasks)
      if (place.home == Home::Update && place.chunk == last.chunk)
        last.round = std::max(last.round, place.round);
    Task &update = taskOf(last);
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
  for (auto &[place, task] : tasks) {
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
  OpBuilder builder(context);
  builder.setInsertionPointToEnd(entry->getBlock());
  Location loc = entry.getLoc();
  auto schedule = dist::ScheduleOp::create(
      builder, loc, (entry.getSymName() + "_schedule").str(),
      entry.getSymName(), order.getMicroBatches());
  builder.createBlock(&schedule.getBody());
  std::map<Place, StringRef> names;
  for (auto &[place, task] : tasks)
    if (!task.results.empty())
      names[place] = task.function.getSymName();
  for (int64_t stage = 0; stage < order.countStages(); ++stage) {
    auto op = dist::StageOp::create(builder, loc, stage);
    OpBuilder list = OpBuilder::atBlockEnd(&op.getBody().emplaceBlock());
    order.write(stage, names, list, loc);
  }
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
                                     /*stage=*/0, /*chunk=*/0, /*round=*/0));
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
      if (!entry.isExternal() &&
          (failed(nn::requireTypes(entry, /*placed=*/false)) ||
           failed(split(entry, *mesh, symbols))))
        return signalPassFailure();
  }

  LogicalResult split(func::FuncOp entry, dist::MeshOp mesh,
                      SymbolTable &symbols) {
    int64_t microBatches =
        mesh.findAxisSize(dist::MeshOp::kMicroBatchAxis).value_or(1);
    int64_t stages = mesh.findAxisSize(dist::MeshOp::kPipelineAxis).value_or(1);
    bool isStep = nn::getEntryKind(entry) == nn::EntryKind::step;
    if (!isStep && microBatches == 1 && stages == 1) {
      addSchedule(entry);
      return success();
    }
    FailureOr<TaskHomes> homes = TaskHomes::compute(entry, mesh);
    if (failed(homes))
      return failure();
    FailureOr<TaskOrder> order =
        TaskOrder::choose(entry, *homes, microBatches, stages);
    if (failed(order))
      return failure();
    if (order->splitsBackward())
      homes->splitBackward();
    Splitter(entry, *homes, *order, symbols).run();
    return success();
  }
};
} // namespace
} // namespace accel::tasks
