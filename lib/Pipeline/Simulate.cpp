// Finds the longest way to each task of a step.

#include "Simulate.h"
#include <numeric>

using namespace accel::pipeline;

double Simulation::getBubbleFraction() const {
  double busy = std::accumulate(busySeconds.begin(), busySeconds.end(), 0.0);
  return seconds > 0 ? 1 - busy / (seconds * busySeconds.size()) : 0;
}

double Simulation::getLongestIdle() const {
  double longest = 0;
  for (size_t rank = 0; rank < tasks.size(); ++rank)
    if (!tasks[rank].empty())
      longest =
          std::max(longest, tasks[rank].back().end - tasks[rank].front().begin -
                                busySeconds[rank]);
  return longest;
}

std::vector<double> accel::pipeline::findBegins(const Execution &execution,
                                                const Costs &costs) {
  std::vector<double> begins(execution.countNodes());
  for (size_t node : execution.getOrder()) {
    double toEnd = 0, toValue = 0;
    if (node < execution.countTasks()) {
      const Task &task = execution.getTask(node);
      toEnd = costs.chunks[task.chunk].getSeconds(task.kind);
      toValue = costs.chunks[task.chunk].getSecondsToValue(task.kind);
    } else if (const Transfer *transfer = execution.findTransfer(node)) {
      toEnd = costs.getSeconds(*transfer);
    }
    for (const Execution::Waiter &waiter : execution.getWaiters(node))
      begins[waiter.node] =
          std::max(begins[waiter.node],
                   begins[node] + (waiter.isForValue ? toValue : toEnd));
  }
  return begins;
}

std::vector<int64_t>
accel::pipeline::countActivationBytes(const Placement &placement,
                                      const Slots &slots, const Costs &costs) {
  std::vector<int64_t> bytes(placement.ranks);
  for (int64_t chunk = 0; chunk < placement.countChunks(); ++chunk)
    bytes[placement.rankOfChunk[chunk]] +=
        slots.at(chunk, SlotKind::Activation) * costs.chunks[chunk].inputBytes +
        slots.at(chunk, SlotKind::WeightActivation) *
            costs.chunks[chunk].weightBytes;
  return bytes;
}

llvm::Expected<Simulation> accel::pipeline::simulate(const Schedule &schedule,
                                                     llvm::ArrayRef<Edge> edges,
                                                     const Slots &slots,
                                                     const Posting *posting,
                                                     const Costs &costs) {
  Execution execution(schedule, edges, slots, posting);
  if (!execution.ends())
    return llvm::createStringError("the step does not end: " +
                                   execution.describeCircle());
  std::vector<double> begins = findBegins(execution, costs);
  Simulation result;
  result.peakActivations = countLiveActivations(schedule);
  result.activationBytes =
      countActivationBytes(schedule.placement, slots, costs);
  size_t node = 0;
  for (const auto &rank : schedule.ranks) {
    std::vector<Span> &spans = result.tasks.emplace_back();
    double busy = 0;
    for (const Task &task : rank) {
      double seconds = costs.chunks[task.chunk].getSeconds(task.kind);
      spans.push_back({begins[node], begins[node] + seconds});
      busy += seconds;
      result.seconds = std::max(result.seconds, spans.back().end);
      ++node;
    }
    result.busySeconds.push_back(busy);
  }
  for (size_t i = 0; i < execution.getTransfers().size(); ++i) {
    const Transfer &transfer = execution.getTransfers()[i];
    double begin = begins[execution.getTransferNode(i)];
    result.transfers.push_back(
        {transfer, {begin, begin + costs.getSeconds(transfer)}});
  }
  return result;
}
