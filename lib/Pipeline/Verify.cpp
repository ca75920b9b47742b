// Checks a step from its frame inwards: sizes, edges, tasks, slots, transfers;
// what is left is whether it ends, which the graph of the execution tells.

#include "Verify.h"
#include "Execution.h"

#include <map>
#include <set>

using namespace llvm;

namespace accel::pipeline {
namespace {

class Verifier {
public:
  Verifier(const Schedule &schedule, ArrayRef<Edge> edges, const Slots &slots,
           const Posting &posting)
      : schedule(schedule), edges(edges), slots(slots), posting(posting),
        chunks(schedule.placement.countChunks()) {}

  Error run() {
    if (Error error = verifyProgram())
      return error;
    if (Error error = verifyKeptSlots())
      return error;
    if (Error error = verifyPosting())
      return error;
    if (Error error = verifyMessageOrder())
      return error;
    return verifyEnd(&posting);
  }

  Error runOfOrder() {
    if (Error error = verifyProgram())
      return error;
    return verifyEnd(/*posting=*/nullptr);
  }

private:
  /// Tasks and edges, whatever holds what they make.
  Error verifyProgram() {
    if (Error error = verifyFrame())
      return error;
    if (Error error = verifyEdges())
      return error;
    if (Error error = verifyTasks())
      return error;
    return verifyPresence();
  }
  Error verifyEnd(const Posting *posting) {
    Execution execution(schedule, edges, slots, posting);
    if (execution.ends())
      return Error::success();
    return createStringError("the step does not end: " +
                             execution.describeCircle());
  }
  Error verifyFrame();
  Error verifyEdges();
  Error verifyTasks();
  Error verifyTask(const Task &task, int64_t rank, const std::string &where);
  Error verifyPresence();
  Error verifyKeptSlots();
  Error verifyPosting();
  Error verifyMessageOrder();

  size_t getIndex(int64_t chunk, int64_t micro) const {
    return chunk * schedule.microBatches + micro;
  }
  int64_t getRank(int64_t chunk) const {
    return schedule.placement.rankOfChunk[chunk];
  }
  static std::string at(int64_t rank, size_t position) {
    return "rank " + std::to_string(rank) + ", position " +
           std::to_string(position) + ": ";
  }

  const Schedule &schedule;
  ArrayRef<Edge> edges;
  const Slots &slots;
  const Posting &posting;
  const int64_t chunks;
  /// Of each kind, by getIndex: whether the task has been found.
  std::array<std::vector<bool>, 4> found;
};

Error Verifier::verifyFrame() {
  int64_t ranks = schedule.placement.ranks;
  if (ranks < 1 || chunks < 1 || schedule.microBatches < 1)
    return createStringError(
        "expected 1 or more ranks, chunks and micro-batches, found " +
        Twine(ranks) + ", " + Twine(chunks) + " and " +
        Twine(schedule.microBatches));
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    if (getRank(chunk) < 0 || getRank(chunk) >= ranks)
      return createStringError("chunk " + Twine(chunk) +
                               " expects a rank below " + Twine(ranks) +
                               ", found " + Twine(getRank(chunk)));
  if (int64_t(schedule.ranks.size()) != ranks)
    return createStringError("expected the tasks of " + Twine(ranks) +
                             " ranks, found those of " +
                             Twine(schedule.ranks.size()));
  if (int64_t(posting.ranks.size()) != ranks)
    return createStringError("expected the transfers of " + Twine(ranks) +
                             " ranks, found those of " +
                             Twine(posting.ranks.size()));
  if (slots.countChunks() != chunks)
    return createStringError("expected the slots of " + Twine(chunks) +
                             " chunks, found those of " +
                             Twine(slots.countChunks()));
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    for (size_t kind = 0; kind < kSlotKinds; ++kind)
      if (slots.at(chunk, SlotKind(kind)) < 1)
        return createStringError("chunk " + Twine(chunk) +
                                 " expects 1 or more slots for " +
                                 toString(SlotKind(kind)) + ", found " +
                                 Twine(slots.at(chunk, SlotKind(kind))));
  return Error::success();
}

Error Verifier::verifyEdges() {
  std::set<std::pair<int64_t, int64_t>> known;
  for (const Edge &edge : edges) {
    std::string name = "edge " + std::to_string(edge.source) + "->" +
                       std::to_string(edge.target);
    if (edge.source < 0 || edge.target >= chunks || edge.source >= edge.target)
      return createStringError(name + " expects a later chunk of " +
                               Twine(chunks) + " behind an earlier one");
    if (!known.insert({edge.source, edge.target}).second)
      return createStringError(name + " is there twice");
  }
  return Error::success();
}

Error Verifier::verifyTask(const Task &task, int64_t rank,
                           const std::string &where) {
  std::string what = where + toString(task);
  if (task.chunk < 0 || task.chunk >= chunks || task.microBatch < 0 ||
      task.microBatch >= schedule.microBatches)
    return createStringError(what + " is of none of " + Twine(chunks) +
                             " chunks and " + Twine(schedule.microBatches) +
                             " micro-batches");
  if (getRank(task.chunk) != rank)
    return createStringError(what + " expects rank " +
                             Twine(getRank(task.chunk)) +
                             ", where its chunk is");
  size_t index = getIndex(task.chunk, task.microBatch);
  auto has = [&](TaskKind kind) { return bool(found[size_t(kind)][index]); };
  auto name = [&](TaskKind kind) {
    return toString(Task{kind, task.chunk, task.microBatch});
  };
  if (has(task.kind))
    return createStringError(what + " has run before");
  TaskKind needed = task.kind == TaskKind::BackwardWeight
                        ? TaskKind::BackwardInput
                        : TaskKind::Forward;
  if (task.kind != TaskKind::Forward && !has(needed))
    return createStringError(what + " expects " + name(needed) +
                             " before it, found it nowhere before");
  bool isPart = task.kind == TaskKind::BackwardInput;
  TaskKind other = isPart ? TaskKind::Backward : TaskKind::BackwardInput;
  if (makesInputGradient(task.kind) && has(other))
    return createStringError(what +
                             " expects a backward that is whole or in "
                             "parts, found " +
                             name(other) + " before it");
  found[size_t(task.kind)][index] = true;
  return Error::success();
}

Error Verifier::verifyTasks() {
  for (auto &ofKind : found)
    ofKind.assign(chunks * schedule.microBatches, false);
  for (int64_t rank = 0; rank < schedule.placement.ranks; ++rank)
    for (size_t position = 0; position < schedule.ranks[rank].size();
         ++position)
      if (Error error = verifyTask(schedule.ranks[rank][position], rank,
                                   at(rank, position)))
        return error;
  return Error::success();
}

Error Verifier::verifyPresence() {
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    for (int64_t micro = 0; micro < schedule.microBatches; ++micro) {
      auto has = [&](TaskKind kind) {
        return bool(found[size_t(kind)][getIndex(chunk, micro)]);
      };
      auto lack = [&](TaskKind kind) {
        return createStringError("rank " + Twine(getRank(chunk)) + " expects " +
                                 toString(Task{kind, chunk, micro}) +
                                 " among " +
                                 Twine(schedule.ranks[getRank(chunk)].size()) +
                                 " tasks, found it nowhere");
      };
      if (!has(TaskKind::Forward))
        return lack(TaskKind::Forward);
      if (!has(TaskKind::Backward) && !has(TaskKind::BackwardInput))
        return lack(TaskKind::Backward);
      if (has(TaskKind::BackwardInput) && !has(TaskKind::BackwardWeight))
        return lack(TaskKind::BackwardWeight);
    }
  return Error::success();
}

Error Verifier::verifyKeptSlots() {
  // In each slot of a chunk, kind and edge the micro-batch that it keeps.
  std::map<std::array<int64_t, 4>, int64_t> kept;
  for (int64_t rank = 0; rank < schedule.placement.ranks; ++rank)
    for (size_t position = 0; position < schedule.ranks[rank].size();
         ++position) {
      const Task &task = schedule.ranks[rank][position];
      for (SlotUse use : listSlotUses(task, schedule.placement, edges)) {
        int64_t count = slots.at(use.chunk, use.kind);
        int64_t slot = task.microBatch % count;
        std::array<int64_t, 4> place = {use.chunk, int64_t(use.kind),
                                        int64_t(use.edge), slot};
        if (!use.writes) {
          kept.erase(place);
          continue;
        }
        auto [holder, isFree] = kept.insert({place, task.microBatch});
        if (!isFree)
          return createStringError(at(rank, position) + toString(task) +
                                   " expects slot " + Twine(slot) + " of " +
                                   Twine(count) + " for " + toString(use.kind) +
                                   " free, found micro-batch " +
                                   Twine(holder->second) + " in it");
      }
    }
  return Error::success();
}

Error Verifier::verifyPosting() {
  // Of each implied transfer the rank that has posted its send, and its
  // receive.
  std::map<std::array<int64_t, 3>, std::array<bool, 2>> posted;
  auto keyOf = [](const Transfer &transfer) {
    return std::array<int64_t, 3>{int64_t(transfer.edge), transfer.gradient,
                                  transfer.microBatch};
  };
  std::vector<Transfer> transfers = listTransfers(schedule, edges);
  for (const Transfer &transfer : transfers)
    posted[keyOf(transfer)] = {false, false};
  for (int64_t rank = 0; rank < schedule.placement.ranks; ++rank)
    for (size_t position = 0; position < posting.ranks[rank].size();
         ++position) {
      std::string where = "rank " + std::to_string(rank) + ", group " +
                          std::to_string(position) + ": ";
      if (posting.ranks[rank][position].empty())
        return createStringError(where + "expected a transfer, found none");
      for (const Transfer &transfer : posting.ranks[rank][position]) {
        auto implied = posted.find(keyOf(transfer));
        if (implied == posted.end())
          return createStringError(where + "no task of another rank has the "
                                           "transfer that is posted");
        std::string what = where + toString(transfer, edges);
        int64_t sender = getRank(getSender(transfer, edges));
        int64_t receiver = getRank(getReceiver(transfer, edges));
        if (rank != sender && rank != receiver)
          return createStringError(what + " expects rank " + Twine(sender) +
                                   " or " + Twine(receiver));
        bool &isPosted = implied->second[rank == receiver];
        if (isPosted)
          return createStringError(what + " is posted twice");
        isPosted = true;
      }
    }
  for (const Transfer &transfer : transfers)
    for (bool receives : {false, true})
      if (!posted[keyOf(transfer)][receives]) {
        int64_t chunk = receives ? getReceiver(transfer, edges)
                                 : getSender(transfer, edges);
        return createStringError(
            "rank " + Twine(getRank(chunk)) + " expects to " +
            (receives ? "receive " : "send ") + toString(transfer, edges) +
            ", found it in no group");
      }
  return Error::success();
}

Error Verifier::verifyMessageOrder() {
  // What each rank posts from one rank to another, in its order.
  using Way = std::pair<int64_t, int64_t>;
  std::vector<std::map<Way, std::vector<Transfer>>> ways(posting.ranks.size());
  for (size_t rank = 0; rank < posting.ranks.size(); ++rank)
    for (const Group &group : posting.ranks[rank])
      for (const Transfer &transfer : group)
        ways[rank][{getRank(getSender(transfer, edges)),
                    getRank(getReceiver(transfer, edges))}]
            .push_back(transfer);
  for (size_t rank = 0; rank < ways.size(); ++rank)
    for (auto &[way, sent] : ways[rank]) {
      if (way.first != int64_t(rank))
        continue;
      const std::vector<Transfer> &received = ways[way.second][way];
      for (size_t number = 0; number < sent.size(); ++number)
        if (!(sent[number] == received[number]))
          return createStringError(
              "message " + Twine(number) + " from rank " + Twine(way.first) +
              " to rank " + Twine(way.second) + ": sent is " +
              toString(sent[number], edges) + ", expected is " +
              toString(received[number], edges));
    }
  return Error::success();
}

} // namespace

Error verify(const Schedule &schedule, ArrayRef<Edge> edges, const Slots &slots,
             const Posting &posting) {
  return Verifier(schedule, edges, slots, posting).run();
}

Error verifyOrder(const Schedule &schedule, ArrayRef<Edge> edges) {
  // With a slot for each micro-batch nothing waits for one.
  Slots slots(schedule.placement.countChunks());
  for (int64_t chunk = 0; chunk < slots.countChunks(); ++chunk)
    for (size_t kind = 0; kind < kSlotKinds; ++kind)
      slots.at(chunk, SlotKind(kind)) = schedule.microBatches;
  Posting none;
  none.ranks.resize(schedule.ranks.size());
  return Verifier(schedule, edges, slots, none).runOfOrder();
}

} // namespace accel::pipeline
