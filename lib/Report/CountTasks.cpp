// Counts what tasks do, and what edges carry.

#include "CountTasks.h"

#include "dialects/Accel/ValueName.h"
#include "dialects/Interfaces/Cost.h"
#include "dialects/NN/Chunks.h"
#include "dialects/NN/NN.h"
#include "lib/Cost/Work.h"

using namespace mlir;
using namespace accel;
using namespace accel::report;

/// The name of the first node in a location, or of the value where text was
/// read; empty if there is none.
static std::string findName(Location location) {
  std::string found;
  location->walk([&](Location inner) {
    StringAttr written = getValueName(inner);
    auto name = dyn_cast<NameLoc>(inner);
    if (!written && (!name || name.getName() == "gradient"))
      return WalkResult::advance();
    found = (written ? written : name.getName()).str();
    return WalkResult::interrupt();
  });
  return found;
}

namespace {
class Counter {
public:
  Counter(PipelineFigures &figures) : figures(figures) {}
  void run();

private:
  struct Home {
    func::FuncOp task;
    dist::TaskKind kind;
    int64_t chunk;
  };
  void countTask(const Home &home);
  void nameEnds(const Home &home);
  void countEdge(dist::EdgeOp edge);

  bool isRepeated(const Home &home) const {
    switch (home.kind) {
    case dist::TaskKind::forward:
    case dist::TaskKind::backward:
    case dist::TaskKind::backward_input:
    case dist::TaskKind::backward_weight:
    case dist::TaskKind::count:
      return true;
    default:
      return false;
    }
  }

  PipelineFigures &figures;
  llvm::MapVector<StringAttr, Home> homes;
  std::vector<llvm::DenseSet<nn::StateOp>> states; ///< of each chunk
  /// Of chunks, which their backwards read: bytes, and whether the gradients of
  /// weights do.
  llvm::MapVector<std::pair<int64_t, StringAttr>, std::pair<int64_t, bool>>
      inputs;
  /// Of each chunk what is counted as kept already, by task and result.
  using Kept = std::set<std::pair<Operation *, int64_t>>;
  std::vector<Kept> keptForWeights, kept;
  std::set<std::tuple<Operation *, int64_t, int64_t>> crossed;
};
} // namespace

void Counter::run() {
  size_t count = figures.placement.countChunks();
  figures.chunks.resize(count);
  states.resize(count);
  keptForWeights.resize(count);
  kept.resize(count);
  dist::ScheduleOp schedule = figures.schedule;
  schedule.walk([&](dist::RunOp run) {
    auto task = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        run, run.getTaskAttr());
    auto what = task->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr);
    homes.insert({run.getTaskAttr().getAttr(),
                  {task, what.getKind(),
                   figures.getChunk(what.getStage(), what.getChunk())}});
  });
  for (auto &[name, home] : homes)
    countTask(home);
  for (auto &[input, read] : inputs) {
    ChunkFigures &chunk = figures.chunks[input.first];
    (read.second ? chunk.keptForWeightsBytes : chunk.keptBytes) += read.first;
  }
  // What both parts of a backward read is kept until the second.
  SmallVector<dist::EdgeOp> edges(schedule.getBody().getOps<dist::EdgeOp>());
  llvm::stable_sort(edges, [&](dist::EdgeOp one, dist::EdgeOp other) {
    auto comesFirst = [&](dist::EdgeOp edge) {
      auto home = homes.find(edge.getTargetAttr().getAttr());
      return home != homes.end() &&
             home->second.kind == dist::TaskKind::backward_weight;
    };
    return comesFirst(one) && !comesFirst(other);
  });
  for (dist::EdgeOp edge : edges)
    countEdge(edge);
}

/// Of the task that makes a value, until it has made it.
static double getWorkUpTo(Value value) {
  Operation *maker = value.getDefiningOp();
  if (!maker)
    return 0;
  double work = cost::getWork(maker);
  for (Operation *op = maker->getPrevNode(); op; op = op->getPrevNode())
    work += cost::getWork(op);
  return work;
}

void Counter::countTask(const Home &home) {
  ChunkFigures &chunk = figures.chunks[home.chunk];
  func::FuncOp task = home.task;
  for (BlockArgument argument : task.getArguments()) {
    nn::StateOp state = nn::findState(argument);
    int64_t bytes = getTensorBytes(argument.getType());
    // Inputs that the backward reads are kept like activations.
    auto input = task.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                   nn::kInputAttr);
    bool isOfWeights = home.kind == dist::TaskKind::backward_weight;
    if (input && (isOfWeights || home.kind == dist::TaskKind::backward ||
                  home.kind == dist::TaskKind::backward_input)) {
      auto &read = inputs[{home.chunk, input}];
      read.first = bytes;
      read.second |= isOfWeights;
    }
    if (!state || !states[home.chunk].insert(state).second)
      continue;
    chunk.stateBytes += bytes;
    if (state.getRole() != nn::StateRole::parameter)
      continue;
    chunk.parameters += state.getLogicalType().getNumElements();
    chunk.parameterBytes += bytes;
  }
  if (!isRepeated(home) || home.kind == dist::TaskKind::count)
    return;
  TaskFigures &figure = chunk.tasks[home.kind];
  for (Operation &op : task.front().without_terminator()) {
    if (auto cost = dyn_cast<CostOpInterface>(op))
      figure.flops += cost.getFlops();
    figure.work += cost::getWork(&op);
  }
  if (home.kind == dist::TaskKind::forward)
    nameEnds(home);
}

/// As the model was cut: what depends on inputs and on states. What comes from
/// other tasks that run once is of states, from those of a micro-batch of both.
void Counter::nameEnds(const Home &home) {
  func::FuncOp task = home.task;
  llvm::DenseSet<Value> ofInputs, ofStates, sums;
  for (BlockArgument argument : task.getArguments()) {
    bool isInput =
        bool(task.getArgAttr(argument.getArgNumber(), nn::kInputAttr));
    nn::StateOp owner = nn::findState(argument);
    if (owner && owner.getRole() == nn::StateRole::accumulator)
      sums.insert(argument);
    bool isState = bool(owner);
    if (!isState && !isInput) {
      isState = isInput = true;
      for (auto edge : figures.schedule.getBody().getOps<dist::EdgeOp>())
        if (edge.getTarget() == task.getSymName() &&
            edge.getArgument() == argument.getArgNumber())
          if (auto source = homes.find(edge.getSourceAttr().getAttr());
              source != homes.end())
            isInput = isRepeated(source->second);
    }
    if (isInput)
      ofInputs.insert(argument);
    if (isState)
      ofStates.insert(argument);
  }
  ChunkFigures &chunk = figures.chunks[home.chunk];
  for (Operation &op : task.front().without_terminator()) {
    auto reads = [&op](const llvm::DenseSet<Value> &values) {
      return llvm::any_of(op.getOperands(), [&](Value operand) {
        return values.contains(operand);
      });
    };
    bool input = reads(ofInputs), state = reads(ofStates);
    for (Value result : op.getResults()) {
      if (input)
        ofInputs.insert(result);
      if (state)
        ofStates.insert(result);
    }
    // What is added to a sum over micro-batches is no node's.
    std::string name =
        input && state && !reads(sums) ? findName(op.getLoc()) : "";
    if (name.empty())
      continue;
    if (chunk.first.empty())
      chunk.first = name;
    chunk.last = name;
  }
}

/// The state that a value is another view of; null if it is computed.
static nn::StateOp traceState(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<nn::ReshapeOp, nn::TransposeOp, nn::CastOp>(op))
      return nullptr;
    value = op->getOperand(0);
  }
  return nn::findState(cast<BlockArgument>(value));
}

void Counter::countEdge(dist::EdgeOp edge) {
  auto from = homes.find(edge.getSourceAttr().getAttr());
  auto to = homes.find(edge.getTargetAttr().getAttr());
  if (from == homes.end() || to == homes.end())
    return; // no run, no value
  const Home &source = from->second, &target = to->second;
  func::FuncOp maker = source.task, reader = target.task;
  std::pair<Operation *, int64_t> value{maker, edge.getResult()};
  Type type = maker.getFunctionType().getResult(edge.getResult());
  int64_t bytes = getTensorBytes(type);
  ChunkFigures &chunk = figures.chunks[target.chunk];
  bool ofForward = source.kind == dist::TaskKind::forward;
  if (target.kind == dist::TaskKind::backward_weight) {
    if (isRepeated(source) && keptForWeights[target.chunk].insert(value).second)
      chunk.keptForWeightsBytes += bytes;
  } else if (ofForward && (target.kind == dist::TaskKind::backward ||
                           target.kind == dist::TaskKind::backward_input)) {
    if (!keptForWeights[target.chunk].count(value) &&
        kept[target.chunk].insert(value).second)
      chunk.keptBytes += bytes;
  }
  if (source.chunk == target.chunk ||
      !crossed.insert({maker, edge.getResult(), target.chunk}).second)
    return;
  Value made = maker.front().getTerminator()->getOperand(edge.getResult());
  if (source.kind == dist::TaskKind::backward && isRepeated(target)) {
    double &work =
        figures.chunks[source.chunk].tasks[source.kind].workToGradient;
    work = std::max(work, getWorkUpTo(made));
  }
  nn::StateOp state = traceState(made);
  std::string name = findName(reader.getArgument(edge.getArgument()).getLoc());
  figures.crossings.push_back(
      {source.chunk, target.chunk, name, type, bytes, ofForward,
       isRepeated(source) && isRepeated(target),
       state ? state.getSymName().str() : "",
       state && state.getRole() == nn::StateRole::parameter});
}

void report::countTasks(PipelineFigures &figures) { Counter(figures).run(); }
