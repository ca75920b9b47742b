// One step as a graph of what waits for what: tasks, transfers and groups of
// them, over all ranks. The verifier asks whether it has a circle, the
// simulator for its longest way, the poster for an order of transfers.

#ifndef ACCEL_LIB_PIPELINE_EXECUTION_H
#define ACCEL_LIB_PIPELINE_EXECUTION_H

#include "Slots.h"

namespace accel::pipeline {

/// The graph has an order exactly if the step ends: no node has a choice (a
/// rank runs its tasks, and posts its groups, in the order of its lists), so
/// whether it ends depends on no duration.
///
/// - A task waits for the task before it on its rank, for what it needs of its
///   rank, for the groups that receive what it needs of others, and for the
///   sends of those whose slots it writes.
/// - A group waits for the group before it on its rank, for the tasks whose
///   values it sends, and for those that read what its slots held before.
/// - A transfer waits for the group at either end (rendezvous: nothing is
///   buffered), and a group ends with its last transfer.
///
/// Without a posting, groups and their order are left out: each transfer goes
/// when its value and its slot are there.
class Execution {
public:
  /// Requires that each task is there once, on the rank of its chunk, and, with
  /// a posting, each transfer once on either rank; that edges and slots are in
  /// range. verify (Verify.h) says so.
  Execution(const Schedule &schedule, llvm::ArrayRef<Edge> edges,
            const Slots &slots, const Posting *posting);

  /// Nodes: tasks rank by rank, then transfers, then the beginning and the end
  /// of each group.
  size_t countNodes() const { return firstWaiter.size() - 1; }
  size_t countTasks() const { return tasks.size(); }
  const Task &getTask(size_t node) const { return tasks[node]; }
  llvm::ArrayRef<Transfer> getTransfers() const { return transfers; }
  size_t getTransferNode(size_t transfer) const {
    return tasks.size() + transfer;
  }
  /// Null of a node that is no transfer.
  const Transfer *findTransfer(size_t node) const {
    return node >= tasks.size() && node < tasks.size() + transfers.size()
               ? &transfers[node - tasks.size()]
               : nullptr;
  }

  struct Waiter {
    size_t node;
    /// Whether it is a transfer, or the group of one, that waits for what the
    /// task makes, and not for its end.
    bool isForValue;
  };
  /// Those that wait for a node.
  llvm::ArrayRef<Waiter> getWaiters(size_t node) const {
    return llvm::ArrayRef(waiters).slice(
        firstWaiter[node], firstWaiter[node + 1] - firstWaiter[node]);
  }
  /// Nodes, each after all that it waits for. Fewer than all if some wait for
  /// each other.
  llvm::ArrayRef<size_t> getOrder() const { return order; }
  bool ends() const { return order.size() == countNodes(); }
  /// Tasks and groups that wait for each other. Requires that it does not end.
  std::string describeCircle() const;

private:
  static constexpr size_t kNone = -1;
  size_t &findTask(TaskKind kind, int64_t chunk, int64_t microBatch);
  size_t getTransfer(size_t edge, bool gradient, int64_t microBatch) const {
    return firstOfEdge[edge] + gradient * schedule.microBatches + microBatch;
  }
  size_t getProducer(const Transfer &transfer);
  size_t getConsumer(const Transfer &transfer);
  void addWait(size_t before, size_t after, bool isForValue = false) {
    waits.push_back({before, {after, isForValue}});
  }
  void numberTasks();
  void numberGroups();
  void addTasks();
  void addTransfers();
  void addSentSlots();
  void addReceivedSlots();
  void sort();
  std::string describe(size_t node) const;

  const Schedule &schedule;
  llvm::ArrayRef<Edge> edges;
  const Slots &slots;
  const Posting *posting;

  std::vector<Task> tasks;
  std::vector<size_t> firstOfRank; ///< The node of each rank's first task.
  std::vector<size_t> taskNodes;   ///< See findTask.
  std::vector<Transfer> transfers;
  std::vector<size_t> firstOfEdge;
  /// Of each transfer the nodes that stand for it where it is sent and
  /// received: the beginnings of the groups, which their ends follow, or
  /// itself.
  std::vector<size_t> sendNodes, receiveNodes;
  /// Of each beginning of a group its rank and position.
  std::vector<std::pair<size_t, size_t>> groups;

  std::vector<std::pair<size_t, Waiter>> waits;
  std::vector<Waiter> waiters;
  std::vector<size_t> firstWaiter, order;
};

} // namespace accel::pipeline

#endif // ACCEL_LIB_PIPELINE_EXECUTION_H
