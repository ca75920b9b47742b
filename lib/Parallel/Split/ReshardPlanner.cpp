// Shortest paths between shardings.

#include "ReshardPlanner.h"

#include "lib/Parallel/Propagation/FactorAxes.h"

#include <queue>

using namespace mlir;
using namespace accel;
using cost::Exchange;
using namespace accel::parallel;

namespace {
/// Where a tensor is, axes of size 1 left out.
struct State {
  AxisLists dims;
  AxisList partial;

  auto key() const {
    std::vector<std::vector<const void *>> lists;
    for (const AxisList &axes : dims) {
      auto &list = lists.emplace_back();
      for (StringAttr axis : axes)
        list.push_back(axis.getAsOpaquePointer());
    }
    auto &list = lists.emplace_back();
    for (StringAttr axis : partial)
      list.push_back(axis.getAsOpaquePointer());
    llvm::sort(list);
    return lists;
  }
  bool operator==(const State &other) const { return key() == other.key(); }
};

/// The search for one pair of shardings.
class Search {
public:
  Search(ReshardPlanner &planner, dist::MeshOp mesh, ArrayRef<int64_t> shape,
         int64_t elementBytes, dist::ShardingAttr from, dist::ShardingAttr to)
      : planner(planner), mesh(mesh), shape(shape), elementBytes(elementBytes),
        symbol(from.getMesh()), reduction(from.getReduction()),
        start(stateOf(from)), goal(stateOf(to)) {
    for (const State &state : {start, goal}) {
      for (const AxisList &list : state.dims)
        for (StringAttr axis : list)
          if (!llvm::is_contained(axes, axis))
            axes.push_back(axis);
    }
    for (StringAttr axis : start.partial)
      if (!llvm::is_contained(axes, axis))
        axes.push_back(axis);
  }

  ReshardPlan run();

private:
  struct Node {
    State state;
    double seconds;
    int previous;
    ReshardStep step;
    bool done = false;
  };

  State stateOf(dist::ShardingAttr sharding);
  int64_t sizeOf(ArrayRef<StringAttr> list) {
    int64_t size = 1;
    for (StringAttr axis : list)
      size *= *mesh.findAxisSize(axis);
    return size;
  }
  int64_t localSize(const State &state, size_t dim) {
    return shape[dim] / sizeOf(state.dims[dim]);
  }
  double localBytes(const State &state) {
    double bytes = elementBytes;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      bytes *= localSize(state, dim);
    return bytes;
  }
  dist::ShardingAttr shardingOf(const State &state) {
    return getSharding(symbol, state.dims, state.partial,
                       state.partial.empty() ? dist::Reduction::sum
                                             : reduction);
  }
  void reach(int from, State state, ReshardStep step,
             ArrayRef<StringAttr> over);
  void expand(int index);
  void addRearrangements();
  void permute(int index, const State &goal);

  ReshardPlanner &planner;
  dist::MeshOp mesh;
  ArrayRef<int64_t> shape;
  int64_t elementBytes;
  FlatSymbolRefAttr symbol;
  dist::Reduction reduction;
  State start, goal;
  std::vector<State> rearrangements;
  AxisList axes;
  std::vector<Node> nodes;
  std::map<std::vector<std::vector<const void *>>, int> index;
  using Item = std::pair<double, int>;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
};
} // namespace

/// Micro-batches come one after another: they can be summed up or cut out, but
/// none can send to another.
static bool isMicroBatch(StringAttr axis) {
  return axis.getValue() == dist::MeshOp::kMicroBatchAxis;
}

State Search::stateOf(dist::ShardingAttr sharding) {
  auto larger = [&](ArrayRef<StringAttr> list) {
    AxisList kept;
    for (StringAttr axis : list)
      if (*mesh.findAxisSize(axis) > 1)
        kept.push_back(axis);
    return kept;
  };
  State state;
  for (dist::AxesAttr dim : sharding.getDims())
    state.dims.push_back(larger(dim.getNames()));
  state.partial = larger(sharding.getPartial().getNames());
  return state;
}

void Search::reach(int from, State state, ReshardStep step,
                   ArrayRef<StringAttr> over) {
  step.axes = dist::AxesAttr::get(symbol.getContext(), over, /*open=*/false);
  double seconds =
      nodes[from].seconds +
      planner.getSeconds(step.kind, step.axes, localBytes(nodes[from].state));
  auto [found, isNew] = index.try_emplace(state.key(), nodes.size());
  if (isNew)
    nodes.push_back({state, seconds, from, {}, false});
  Node &node = nodes[found->second];
  if (!isNew && (node.done || node.seconds <= seconds))
    return;
  step.sharding = shardingOf(state);
  node = {std::move(state), seconds, from, std::move(step), false};
  queue.push({seconds, found->second});
}

void Search::expand(int at) {
  const State state = nodes[at].state;
  size_t rank = state.dims.size();
  auto used = [&](StringAttr axis) {
    return llvm::is_contained(state.partial, axis) ||
           llvm::any_of(state.dims, [&](const AxisList &list) {
             return llvm::is_contained(list, axis);
           });
  };
  auto isGoal = [&](StringAttr axis) {
    return llvm::any_of(goal.dims, [&](const AxisList &list) {
      return llvm::is_contained(list, axis);
    });
  };
  // Only dimensions that one end splits are worth splitting on the way.
  auto worthSplitting = [&](size_t dim) {
    return !start.dims[dim].empty() || !goal.dims[dim].empty();
  };
  auto divides = [&](StringAttr axis, size_t dim) {
    return localSize(state, dim) % *mesh.findAxisSize(axis) == 0;
  };

  for (size_t dim = 0; dim < rank; ++dim) {
    const AxisList &list = state.dims[dim];
    for (size_t keep = 0; keep < list.size(); ++keep) {
      State next = state;
      next.dims[dim].truncate(keep);
      ReshardStep step{Exchange::AllGather};
      step.dim = dim;
      reach(at, next, step, ArrayRef<StringAttr>(list).drop_front(keep));
    }
    if (list.empty())
      continue;
    for (size_t to = 0; to < rank; ++to) {
      if (to == dim || !worthSplitting(to))
        continue;
      for (size_t keep = 0; keep < list.size(); ++keep) {
        auto moved = ArrayRef<StringAttr>(list).drop_front(keep);
        if (llvm::any_of(moved, isMicroBatch) ||
            localSize(state, to) % sizeOf(moved) != 0)
          continue;
        State next = state;
        next.dims[dim].truncate(keep);
        llvm::append_range(next.dims[to], moved);
        ReshardStep step{Exchange::AllToAll};
        step.dim = to;
        step.concatDim = dim;
        reach(at, next, step, moved);
      }
    }
  }
  for (StringAttr axis : axes) {
    bool partial = llvm::is_contained(state.partial, axis);
    if (partial &&
        (llvm::is_contained(goal.partial, axis) || isMicroBatch(axis)))
      continue;
    // What is cut over an axis that the goal does not split is gathered again.
    if (!partial && (used(axis) || !isGoal(axis)))
      continue;
    for (size_t dim = 0; dim < rank; ++dim) {
      if (!worthSplitting(dim) || !divides(axis, dim))
        continue;
      State next = state;
      next.dims[dim].push_back(axis);
      if (partial)
        llvm::erase(next.partial, axis);
      ReshardStep step{partial ? Exchange::ReduceScatter : Exchange::AllSlice};
      step.dim = dim;
      reach(at, next, step, axis);
    }
  }
  // Axes that stand one behind the other at the goal are scattered in one step.
  for (size_t dim = 0; dim < rank; ++dim) {
    const AxisList &list = state.dims[dim];
    auto rest = ArrayRef<StringAttr>(goal.dims[dim]);
    if (rest.size() < list.size() ||
        rest.take_front(list.size()) != ArrayRef<StringAttr>(list))
      continue;
    rest = rest.drop_front(list.size()).take_while([&](StringAttr axis) {
      return llvm::is_contained(state.partial, axis) && !isMicroBatch(axis);
    });
    if (rest.size() < 2)
      continue;
    State next = state;
    llvm::append_range(next.dims[dim], rest);
    llvm::erase_if(next.partial, [&](StringAttr axis) {
      return llvm::is_contained(rest, axis);
    });
    ReshardStep step{Exchange::ReduceScatter};
    step.dim = dim;
    reach(at, next, step, rest);
  }
  // Every subset of the axes that are to be reduced.
  AxisList reducible;
  for (StringAttr axis : state.partial)
    if (!llvm::is_contained(goal.partial, axis))
      reducible.push_back(axis);
  for (unsigned mask = 1; mask < (1u << reducible.size()); ++mask) {
    State next = state;
    AxisList over;
    for (auto [bit, axis] : llvm::enumerate(reducible))
      if (mask & (1u << bit)) {
        over.push_back(axis);
        llvm::erase(next.partial, axis);
      }
    reach(at, next, {Exchange::AllReduce}, over);
  }
  for (const State &target : rearrangements)
    permute(at, target);
}

/// States worth a permutation: the goal, and those that one collective turns
/// into it. Axes that stand in another order than at the goal move together
/// once they are in its order.
void Search::addRearrangements() {
  rearrangements.push_back(goal);
  AxisList left;
  for (StringAttr axis : axes)
    if (!llvm::is_contained(start.partial, axis) &&
        llvm::none_of(goal.dims, [&](const AxisList &list) {
          return llvm::is_contained(list, axis);
        }))
      left.push_back(axis);
  for (size_t dim = 0; dim < goal.dims.size(); ++dim) {
    if (!left.empty()) {
      State gathered = goal;
      llvm::append_range(gathered.dims[dim], left);
      rearrangements.push_back(gathered);
    }
    for (size_t from = 0; from < goal.dims.size(); ++from)
      for (size_t keep = 0; from != dim && keep < goal.dims[dim].size();
           ++keep) {
        State moved = goal;
        moved.dims[dim].truncate(keep);
        llvm::append_range(
            moved.dims[from],
            ArrayRef<StringAttr>(goal.dims[dim]).drop_front(keep));
        rearrangements.push_back(moved);
      }
  }
}

/// Pieces of the same shape that only change hands: one permutation of the
/// group over all axes that split anything. Rank r of the group gets its piece
/// from the k-th rank that has it, r being the k-th that wants it.
void Search::permute(int at, const State &goal) {
  const State state = nodes[at].state;
  if (state == goal ||
      State{{}, state.partial}.key() != State{{}, goal.partial}.key())
    return;
  AxisList over;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (sizeOf(state.dims[dim]) != sizeOf(goal.dims[dim]))
      return;
    if (state.dims[dim] == goal.dims[dim])
      continue;
    for (const State *end : {&state, static_cast<const State *>(&goal)})
      for (StringAttr axis : end->dims[dim])
        if (!llvm::is_contained(over, axis))
          over.push_back(axis);
  }
  if (llvm::any_of(over, isMicroBatch))
    return;
  int64_t group = sizeOf(over);
  // Which piece a member of the group has: its numbers along each changed list.
  auto pieceOf = [&](const State &of, int64_t member) {
    std::map<const void *, int64_t> coordinates;
    for (StringAttr axis : llvm::reverse(over)) {
      int64_t size = *mesh.findAxisSize(axis);
      coordinates[axis.getAsOpaquePointer()] = member % size;
      member /= size;
    }
    std::vector<int64_t> piece;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      if (state.dims[dim] == goal.dims[dim])
        continue;
      int64_t number = 0;
      for (StringAttr axis : of.dims[dim])
        number = number * *mesh.findAxisSize(axis) +
                 coordinates[axis.getAsOpaquePointer()];
      piece.push_back(number);
    }
    return piece;
  };
  std::map<std::vector<int64_t>, std::vector<int64_t>> holders;
  for (int64_t member = group - 1; member >= 0; --member)
    holders[pieceOf(state, member)].push_back(member);
  ReshardStep step{Exchange::Permute};
  for (int64_t member = 0; member < group; ++member) {
    std::vector<int64_t> &from = holders[pieceOf(goal, member)];
    step.sources.push_back(from.back());
    from.pop_back();
  }
  reach(at, goal, step, over);
}

ReshardPlan Search::run() {
  addRearrangements();
  nodes.push_back({start, 0, -1, {}, false});
  index[start.key()] = 0;
  queue.push({0, 0});
  while (!queue.empty()) {
    int at = queue.top().second;
    queue.pop();
    if (nodes[at].done)
      continue;
    nodes[at].done = true;
    if (nodes[at].state == goal) {
      ReshardPlan plan;
      plan.seconds = nodes[at].seconds;
      for (; nodes[at].previous >= 0; at = nodes[at].previous)
        plan.steps.push_back(nodes[at].step);
      std::reverse(plan.steps.begin(), plan.steps.end());
      return plan;
    }
    expand(at);
  }
  llvm_unreachable("gathering everything and slicing always leads to the goal");
}

double ReshardPlanner::getSeconds(Exchange kind, dist::AxesAttr axes,
                                  double bytes) {
  cost::Link link = cost::kMachine.collective;
  if (auto links = mesh.getLinks()) {
    double alpha = 0, beta = 0;
    for (auto [axis, each] : llvm::zip(mesh.getAxes(), *links))
      if (axes.contains(cast<dist::AxisAttr>(axis).getName())) {
        auto said = cast<dist::LinkAttr>(each);
        alpha = std::max(alpha, said.getAlpha().getValueAsDouble());
        beta = std::max(beta, said.getBeta().getValueAsDouble());
      }
    link = {alpha, 1 / beta};
  }
  return cost::getSeconds(kind, mesh.getGroupSize(axes), bytes, link);
}

const ReshardPlan &ReshardPlanner::plan(ArrayRef<int64_t> shape,
                                        int64_t elementBytes,
                                        dist::ShardingAttr from,
                                        dist::ShardingAttr to) {
  Key key{shape.vec(), elementBytes, from.getAsOpaquePointer(),
          to.getAsOpaquePointer()};
  auto [found, isNew] = plans.try_emplace(key);
  if (isNew)
    found->second = Search(*this, mesh, shape, elementBytes, from, to).run();
  return found->second;
}
