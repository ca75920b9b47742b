// Runs a step by what its lists say, with synchronous sends: written for the
// tests, without a line of the graph that the verifier asks.

#ifndef ACCEL_TEST_UNIT_PIPELINE_EXECUTOR_H
#define ACCEL_TEST_UNIT_PIPELINE_EXECUTOR_H

#include "lib/Pipeline/Slots.h"

#include <map>
#include <random>
#include <set>

namespace accel::pipeline {

/// Ranks with a list of tasks and one of groups each, which go on side by side.
/// Tasks read their values from the slots, and see whether they are theirs.
class Executor {
public:
  Executor(const Schedule &schedule, llvm::ArrayRef<Edge> edges,
           const Slots &slots, const Posting &posting)
      : schedule(schedule), edges(edges), slots(slots), posting(posting),
        ranks(schedule.ranks.size()) {}

  /// Empty if all tasks have run, each once and on its own values. `random`
  /// says who goes first wherever several could.
  std::string run(std::mt19937 &random);

private:
  struct Rank {
    size_t task = 0, group = 0;
    bool isPosted = false; ///< The group that is next.
  };
  /// A buffer: its chunk, or edge; what it is for; its number.
  using Place = std::tuple<int64_t, int, int64_t>;
  using Message = std::tuple<size_t, bool, int64_t>;
  enum {
    kActivation,
    kWeight,
    kGradient,
    kIn,
    kInGradient,
    kOut,
    kOutGradient,
    kPassed,
    kPassedGradient,
  };

  bool runTask(size_t rank);
  bool runGroup(size_t rank);
  bool hasArrived(const Task &task);
  bool isSlotToSendFree(const Task &task);
  void passOn(const Task &task);
  void fill(int64_t chunk, int what, SlotKind kind, int64_t micro);
  void empty(int64_t chunk, int what, SlotKind kind, int64_t micro);
  bool crosses(const Edge &edge) const {
    return rankOf(edge.source) != rankOf(edge.target);
  }
  int64_t rankOf(int64_t chunk) const {
    return schedule.placement.rankOfChunk[chunk];
  }
  bool sends(size_t rank, const Transfer &transfer) const {
    return rankOf(getSender(transfer, edges)) == int64_t(rank);
  }
  Place placeOf(const Transfer &transfer, bool isSent) const;
  static Message messageOf(const Transfer &transfer) {
    return {transfer.edge, transfer.gradient, transfer.microBatch};
  }

  const Schedule &schedule;
  llvm::ArrayRef<Edge> edges;
  const Slots &slots;
  const Posting &posting;
  std::vector<Rank> ranks;
  std::map<Place, int64_t> held;      ///< The micro-batch in each slot.
  std::map<Place, int64_t> sendsLeft; ///< Of what is to be sent.
  std::set<Message> sending, receiving, received;
  std::set<std::tuple<TaskKind, int64_t, int64_t>> done;
  std::string wrong;
};

} // namespace accel::pipeline

#endif // ACCEL_TEST_UNIT_PIPELINE_EXECUTOR_H
