// Plays ranks that choose among ready tasks, event by event.

#include "ListSchedule.h"
#include "llvm/ADT/STLExtras.h"

#include <array>
#include <queue>

using namespace accel::pipeline;

namespace {

/// Slots of a chunk of one kind, as they are filled and emptied in turn.
struct Pool {
  int64_t live = 0, most = 1;
  bool isFull() const { return live == most; }
  void take() { most = std::max(most, ++live); }
};

struct Chunk {
  int64_t rank;
  /// How many micro-batches each kind of task has run on; of the backward
  /// either of the whole or of the input's gradient.
  int64_t forwards = 0, backwards = 0, weights = 0;
  /// When what the forward, or the backward, needs of other chunks is there, by
  /// micro-batch, and how many edges it is still to come along.
  std::vector<double> forwardReady, backwardReady;
  std::vector<int64_t> forwardMissing, backwardMissing;
  Pool activations, weightActivations;
};

struct Rank {
  std::vector<int64_t> chunks;
  double freeAt = 0;
  bool ranForward = false;
  int64_t slots = 0, bytes = 0; ///< That its chunks have for their own.
};

/// A task that could run, when it could, and how much it is liked: less first.
struct Candidate {
  Task task;
  double ready;
  std::array<int64_t, 3> key;
};

class Player {
public:
  Player(const Placement &placement, int64_t microBatches,
         llvm::ArrayRef<Edge> edges, const Costs &costs, MemoryCap cap,
         llvm::ArrayRef<int64_t> limits, Policy policy);
  ListSchedule play();

private:
  void decide(int64_t rank, double now);
  void collect(int64_t rank);
  std::array<int64_t, 3> makeKey(const Rank &rank, const Task &task) const;
  bool isAllowed(int64_t chunk) const;
  void run(const Task &task, double now);
  void deliver(size_t edge, bool gradient, int64_t microBatch, double now);
  double getSeconds(const Task &task) const {
    return costs.chunks[task.chunk].getSeconds(task.kind);
  }

  llvm::ArrayRef<Edge> edges;
  const Costs &costs;
  MemoryCap cap;
  llvm::ArrayRef<int64_t> limits;
  Policy policy;
  std::vector<Chunk> chunks;
  std::vector<Rank> ranks;
  std::vector<llvm::SmallVector<size_t>> edgesInto, edgesOutOf;
  ListSchedule result;
  std::vector<Candidate> candidates; ///< Of the rank that decides.
  /// When ranks look for work, the first first.
  using Event = std::pair<double, int64_t>;
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events;
};

Player::Player(const Placement &placement, int64_t microBatches,
               llvm::ArrayRef<Edge> edges, const Costs &costs, MemoryCap cap,
               llvm::ArrayRef<int64_t> limits, Policy policy)
    : edges(edges), costs(costs), cap(cap), limits(limits), policy(policy),
      chunks(placement.countChunks()), ranks(placement.ranks),
      edgesInto(chunks.size()), edgesOutOf(chunks.size()) {
  result.schedule.placement = placement;
  result.schedule.microBatches = microBatches;
  result.schedule.ranks.resize(placement.ranks);
  for (size_t edge = 0; edge < edges.size(); ++edge) {
    edgesInto[edges[edge].target].push_back(edge);
    edgesOutOf[edges[edge].source].push_back(edge);
  }
  for (size_t number = 0; number < chunks.size(); ++number) {
    Chunk &chunk = chunks[number];
    chunk.rank = placement.rankOfChunk[number];
    chunk.forwardReady.assign(microBatches, 0);
    chunk.backwardReady.assign(microBatches, 0);
    chunk.forwardMissing.assign(microBatches, edgesInto[number].size());
    chunk.backwardMissing.assign(microBatches, edgesOutOf[number].size());
    Rank &rank = ranks[chunk.rank];
    rank.chunks.push_back(number);
    ++rank.slots;
    rank.bytes +=
        costs.chunks[number].inputBytes + costs.chunks[number].weightBytes;
  }
}

bool Player::isAllowed(int64_t number) const {
  const Chunk &chunk = chunks[number];
  if (chunk.weightActivations.live >= limits[number])
    return false;
  const Rank &rank = ranks[chunk.rank];
  int64_t slots = rank.slots + chunk.weightActivations.isFull();
  int64_t bytes =
      rank.bytes +
      chunk.activations.isFull() * costs.chunks[number].inputBytes +
      chunk.weightActivations.isFull() * costs.chunks[number].weightBytes;
  return slots <= cap.slots && bytes <= cap.bytes;
}

std::array<int64_t, 3> Player::makeKey(const Rank &rank,
                                       const Task &task) const {
  int64_t order = 2;
  if (task.kind != TaskKind::BackwardWeight) {
    bool wantsForward =
        policy.first == Policy::First::Forward ||
        (policy.first == Policy::First::Alternate && !rank.ranForward);
    order = (task.kind == TaskKind::Forward) != wantsForward;
  }
  if (policy.isDeepFirst)
    return {order, -task.chunk, task.microBatch};
  return {order, task.microBatch, -task.chunk};
}

void Player::collect(int64_t number) {
  candidates.clear();
  const Rank &rank = ranks[number];
  auto add = [&](Task task, double ready) {
    candidates.push_back({task, ready, makeKey(rank, task)});
  };
  for (int64_t number : rank.chunks) {
    const Chunk &chunk = chunks[number];
    int64_t micro = chunk.forwards;
    if (micro < result.schedule.microBatches &&
        chunk.forwardMissing[micro] == 0 && isAllowed(number))
      add({TaskKind::Forward, number, micro}, chunk.forwardReady[micro]);
    micro = chunk.backwards;
    if (micro < chunk.forwards && chunk.backwardMissing[micro] == 0)
      add({policy.isSplit ? TaskKind::BackwardInput : TaskKind::Backward,
           number, micro},
          chunk.backwardReady[micro]);
    if (policy.isSplit && chunk.weights < chunk.backwards)
      add({TaskKind::BackwardWeight, number, chunk.weights}, 0);
  }
}

void Player::deliver(size_t edge, bool gradient, int64_t micro, double now) {
  int64_t target = gradient ? edges[edge].source : edges[edge].target;
  Chunk &chunk = chunks[target];
  if (chunks[edges[edge].source].rank != chunks[edges[edge].target].rank)
    now += costs.getSeconds(Transfer{edge, gradient, micro});
  double &ready = (gradient ? chunk.backwardReady : chunk.forwardReady)[micro];
  ready = std::max(ready, now);
  if (--(gradient ? chunk.backwardMissing : chunk.forwardMissing)[micro] == 0)
    events.push({ready, chunk.rank});
}

void Player::run(const Task &task, double now) {
  Chunk &chunk = chunks[task.chunk];
  Rank &rank = ranks[chunk.rank];
  result.schedule.ranks[chunk.rank].push_back(task);
  double end = now + getSeconds(task);
  result.seconds = std::max(result.seconds, end);
  rank.freeAt = end;
  events.push({end, chunk.rank});
  if (task.kind == TaskKind::Forward) {
    rank.slots += chunk.weightActivations.isFull();
    rank.bytes +=
        chunk.activations.isFull() * costs.chunks[task.chunk].inputBytes +
        chunk.weightActivations.isFull() * costs.chunks[task.chunk].weightBytes;
    chunk.activations.take();
    chunk.weightActivations.take();
    ++chunk.forwards;
    rank.ranForward = true;
    for (size_t edge : edgesOutOf[task.chunk])
      deliver(edge, false, task.microBatch, end);
  } else if (makesInputGradient(task.kind)) {
    --chunk.activations.live;
    ++chunk.backwards;
    rank.ranForward = false;
    for (size_t edge : edgesInto[task.chunk])
      deliver(edge, true, task.microBatch, end);
  } else {
    ++chunk.weights;
  }
  if (task.kind == TaskKind::Backward || task.kind == TaskKind::BackwardWeight)
    --chunk.weightActivations.live;
}

void Player::decide(int64_t number, double now) {
  if (ranks[number].freeAt > now)
    return;
  collect(number);
  const Candidate *best = nullptr;
  for (const Candidate &candidate : candidates)
    if (candidate.ready <= now && (!best || candidate.key < best->key))
      best = &candidate;
  if (!best)
    return; // What it waits for wakes it.
  double until = now + policy.patience * getSeconds(best->task);
  if (llvm::none_of(candidates, [&](const Candidate &candidate) {
        return candidate.ready > now && candidate.ready < until &&
               candidate.key[0] < best->key[0];
      }))
    run(best->task, now);
}

ListSchedule Player::play() {
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    events.push({0, rank});
  while (!events.empty()) {
    auto [now, rank] = events.top();
    events.pop();
    decide(rank, now);
  }
  return std::move(result);
}

} // namespace

ListSchedule accel::pipeline::makeListSchedule(
    const Placement &placement, int64_t microBatches,
    llvm::ArrayRef<Edge> edges, const Costs &costs, MemoryCap cap,
    llvm::ArrayRef<int64_t> limits, Policy policy) {
  return Player(placement, microBatches, edges, costs, cap, limits, policy)
      .play();
}
