// Schedules by their meaning: states as a table that runs read and write, edges
// as values that wait for their reader.

#include "lib/Evaluate/Schedule.h"

#include "lib/Evaluate/States.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

dist::ScheduleOp evaluate::findSchedule(func::FuncOp entry) {
  for (auto schedule :
       entry->getParentOfType<ModuleOp>().getOps<dist::ScheduleOp>())
    if (schedule.getEntry() == entry.getSymName())
      return schedule;
  return {};
}

namespace {
class ScheduleRun {
public:
  ScheduleRun(dist::ScheduleOp schedule, func::FuncOp entry,
              const Bindings &bindings, Lockstep &lockstep, dist::MeshOp mesh,
              std::vector<Assembly> &assemblies)
      : schedule(schedule), entry(entry), bindings(bindings),
        lockstep(lockstep), mesh(mesh), assemblies(assemblies) {}

  LogicalResult start(ArrayRef<Tensor> arguments);
  /// An edge that has not brought yet what a run reads; null if all have.
  dist::EdgeOp findMissing(dist::RunOp run, int64_t turn);
  LogicalResult run(dist::RunOp run, int64_t turn);
  LogicalResult finish();

private:
  FailureOr<GroupTensors> getArgument(func::FuncOp task, unsigned index,
                                      const Binding &binding, int64_t batch);
  const GroupTensors *findGiven(dist::EdgeOp edge, int64_t batch);
  LogicalResult takeResult(func::FuncOp task, unsigned index,
                           const Binding &binding, int64_t batch,
                           GroupTensors tensors);
  GroupTensors cut(const Binding &binding, const Tensor &tensor,
                   int64_t batch) {
    GroupTensors group;
    for (int64_t rank = 0; rank < lockstep.getRankCount(); ++rank)
      group.push_back(binding.placement.cut(tensor, {mesh, rank, batch}));
    return group;
  }

  dist::ScheduleOp schedule;
  func::FuncOp entry;
  const Bindings &bindings;
  Lockstep &lockstep;
  dist::MeshOp mesh;
  std::vector<Assembly> &assemblies;
  llvm::StringMap<Tensor> inputs;
  llvm::StringMap<GroupTensors> states; // by name, with its @
  /// What tasks have given, by task and result, on each micro-batch.
  llvm::DenseMap<std::pair<StringAttr, unsigned>,
                 std::map<int64_t, GroupTensors>>
      given;
  llvm::DenseSet<StringAttr> repeated; ///< tasks that run more than once
};
} // namespace

LogicalResult ScheduleRun::start(ArrayRef<Tensor> arguments) {
  for (auto [binding, tensor] : llvm::zip(bindings.arguments, arguments)) {
    if (binding.isState)
      states[binding.name] = cut(binding, tensor, 0);
    else
      inputs[binding.name] = tensor;
  }
  // What the entry does not show: accumulators.
  SymbolTable symbols(entry->getParentOfType<ModuleOp>());
  llvm::SmallSetVector<StringAttr, 8> tasks;
  schedule.walk([&](dist::RunOp run) {
    StringAttr task = run.getTaskAttr().getAttr();
    if (!tasks.insert(task) || run.getTurn())
      repeated.insert(task);
  });
  for (StringAttr name : tasks) {
    FailureOr<Bindings> task = getBindings(symbols.lookup<func::FuncOp>(name));
    if (failed(task))
      return failure();
    for (const Binding &binding : task->arguments) {
      auto state = binding.isState ? symbols.lookup<nn::StateOp>(
                                         StringRef(binding.name).drop_front())
                                   : nn::StateOp();
      if (!state || states.contains(binding.name))
        continue;
      FailureOr<Tensor> value = loadState(state);
      if (failed(value))
        return failure();
      states[binding.name] = cut(binding, *value, 0);
    }
  }
  return success();
}

/// What an edge brings to a micro-batch; null if it is not made yet.
const GroupTensors *ScheduleRun::findGiven(dist::EdgeOp edge, int64_t batch) {
  StringAttr source = edge.getSourceAttr().getAttr();
  auto &values = given[{source, edge.getResult()}];
  bool same = repeated.contains(source) &&
              repeated.contains(edge.getTargetAttr().getAttr());
  // What is the same for all of them, the last one has given as well.
  auto value = same ? values.find(batch)
                    : (values.empty() ? values.end() : std::prev(values.end()));
  return value == values.end() ? nullptr : &value->second;
}

dist::EdgeOp ScheduleRun::findMissing(dist::RunOp run, int64_t turn) {
  for (auto edge : schedule.getOps<dist::EdgeOp>())
    if (edge.getTarget() == run.getTask() &&
        !findGiven(edge, int64_t(run.getOffset()) + turn))
      return edge;
  return {};
}

FailureOr<GroupTensors> ScheduleRun::getArgument(func::FuncOp task,
                                                 unsigned index,
                                                 const Binding &binding,
                                                 int64_t batch) {
  if (binding.isState) {
    auto state = states.find(binding.name);
    if (state == states.end())
      return task.emitError() << "names no nn.state " << binding.name;
    return state->second;
  }
  if (task.getArgAttr(index, nn::kInputAttr)) {
    auto input = inputs.find(binding.name);
    if (input == inputs.end())
      return task.emitError() << "expected an input of the entry, found '"
                              << binding.name << "'";
    return cut(binding, input->second, batch);
  }
  for (auto edge : schedule.getOps<dist::EdgeOp>()) {
    if (edge.getTarget() != task.getSymName() || edge.getArgument() != index)
      continue;
    const GroupTensors *value = findGiven(edge, batch);
    if (!value)
      return edge.emitOpError() << "expected " << edge.getSourceAttr()
                                << " to run before " << edge.getTargetAttr();
    return *value;
  }
  return task.emitError() << "expected an edge to argument " << index
                          << ", found none";
}

LogicalResult ScheduleRun::takeResult(func::FuncOp task, unsigned index,
                                      const Binding &binding, int64_t batch,
                                      GroupTensors tensors) {
  if (binding.isState) {
    states[binding.name] = std::move(tensors);
    return success();
  }
  if (!task.getResultAttr(index, nn::kOutputAttr)) {
    given[{task.getSymNameAttr(), index}][batch] = std::move(tensors);
    return success();
  }
  for (auto [result, assembly] : llvm::zip(bindings.results, assemblies)) {
    if (result.isState || result.name != binding.name)
      continue;
    for (auto [rank, tensor] : llvm::enumerate(tensors))
      if (failed(assembly.add(tensor, {mesh, static_cast<int64_t>(rank), batch},
                              task.getLoc(), "'" + binding.name + "'")))
        return failure();
    return success();
  }
  return task.emitError() << "gives '" << binding.name
                          << "', which is no output of the entry";
}

LogicalResult ScheduleRun::run(dist::RunOp run, int64_t turn) {
  auto task = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      run, run.getTaskAttr());
  FailureOr<Bindings> local = getBindings(task);
  if (failed(local))
    return failure();
  int64_t batch = static_cast<int64_t>(run.getOffset()) + turn;
  SmallVector<GroupTensors> arguments, results;
  for (auto [index, binding] : llvm::enumerate(local->arguments)) {
    FailureOr<GroupTensors> value = getArgument(task, index, binding, batch);
    if (failed(value))
      return failure();
    arguments.push_back(std::move(*value));
  }
  lockstep.setMicroBatch(batch);
  if (failed(lockstep.call(task, arguments, results)))
    return failure();
  for (auto [index, binding] : llvm::enumerate(local->results))
    if (failed(
            takeResult(task, index, binding, batch, std::move(results[index]))))
      return failure();
  return success();
}

/// Whether all elements are the first one of `first`.
static bool isSplatOf(const Tensor &tensor, const Tensor &first) {
  if (tensor.isFloat())
    return llvm::all_of(tensor.floats(),
                        [&](double x) { return x == first.floats()[0]; });
  return llvm::all_of(tensor.ints(),
                      [&](int64_t x) { return x == first.ints()[0]; });
}

LogicalResult ScheduleRun::finish() {
  for (auto [result, assembly] : llvm::zip(bindings.results, assemblies)) {
    if (!result.isState)
      continue;
    for (auto [rank, tensor] : llvm::enumerate(states[result.name]))
      if (failed(assembly.add(tensor, {mesh, static_cast<int64_t>(rank), 0},
                              entry.getLoc(), "'" + result.name + "'")))
        return failure();
  }
  // The next step adds to what this one leaves.
  for (auto state : entry->getParentOfType<ModuleOp>().getOps<nn::StateOp>()) {
    if (state.getRole() != nn::StateRole::accumulator)
      continue;
    FailureOr<Tensor> first = loadState(state);
    if (failed(first))
      return failure();
    for (const Tensor &sum : states[("@" + state.getSymName()).str()])
      if (!isSplatOf(sum, *first))
        return state.emitOpError() << "expected its first value after the step";
  }
  return success();
}

LogicalResult evaluate::evaluateSchedule(dist::ScheduleOp schedule,
                                         func::FuncOp entry,
                                         const Bindings &bindings,
                                         ArrayRef<Tensor> arguments,
                                         Lockstep &lockstep, dist::MeshOp mesh,
                                         std::vector<Assembly> &assemblies) {
  ScheduleRun all(schedule, entry, bindings, lockstep, mesh, assemblies);
  if (failed(all.start(arguments)))
    return failure();
  std::vector<std::vector<std::pair<dist::RunOp, int64_t>>> lists;
  for (auto stage : schedule.getOps<dist::StageOp>()) {
    auto &list = lists.emplace_back();
    for (Operation &op : stage.getBody().front()) {
      auto loop = dyn_cast<dist::LoopOp>(op);
      for (int64_t turn = 0; turn < (loop ? int64_t(loop.getTrips()) : 1);
           ++turn)
        op.walk([&](dist::RunOp run) { list.push_back({run, turn}); });
    }
  }
  // A stage goes on while it has what it needs of others; one alone always.
  SmallVector<size_t> next(lists.size());
  auto isReady = [&](size_t stage) {
    if (next[stage] == lists[stage].size())
      return false;
    auto [run, turn] = lists[stage][next[stage]];
    return lists.size() == 1 || !all.findMissing(run, turn);
  };
  for (bool goesOn = true; goesOn;) {
    goesOn = false;
    for (size_t stage = 0; stage < lists.size(); ++stage)
      for (; isReady(stage); goesOn = true) {
        auto [run, turn] = lists[stage][next[stage]++];
        if (failed(all.run(run, turn)))
          return failure();
      }
  }
  for (auto [stage, list] : llvm::enumerate(lists))
    if (next[stage] < list.size()) {
      auto [run, turn] = list[next[stage]];
      dist::EdgeOp edge = all.findMissing(run, turn);
      return edge.emitOpError()
             << "never brings to " << edge.getTargetAttr()
             << " what it waits for: stages wait for each other";
    }
  return all.finish();
}
