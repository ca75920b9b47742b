// Sorts the transfers of a step into waves.

#include "PostTransfers.h"
#include "llvm/ADT/STLExtras.h"
#include <tuple>

using namespace accel::pipeline;

/// Of the step's length: sums of the same durations in another order differ by
/// their rounding.
static constexpr double kSameTime = 1e-9;

llvm::Expected<Posting>
accel::pipeline::postTransfers(const Schedule &schedule,
                               llvm::ArrayRef<Edge> edges, const Slots &slots,
                               const Costs &costs) {
  Execution execution(schedule, edges, slots, nullptr);
  if (!execution.ends())
    return llvm::createStringError(
        "no order of transfers ends with these slots: " +
        execution.describeCircle());
  std::vector<double> begins = findBegins(execution, costs);
  double seconds = *std::max_element(begins.begin(), begins.end());
  // Stable, so that what begins when another ends, having no duration, stays
  // behind it.
  std::vector<size_t> nodes = execution.getOrder().vec();
  llvm::stable_sort(
      nodes, [&](size_t one, size_t two) { return begins[one] < begins[two]; });

  Posting posting;
  posting.ranks.resize(schedule.ranks.size());
  std::vector<size_t> waveOfGroup(schedule.ranks.size());
  // The last wave that each node needs; waves are counted from 1.
  std::vector<size_t> needs(execution.countNodes());
  size_t wave = 0;
  double waveBegin = 0;
  for (size_t node : nodes) {
    const Transfer *transfer = execution.findTransfer(node);
    if (transfer) {
      if (wave == 0 || begins[node] > waveBegin + kSameTime * seconds ||
          needs[node] == wave) {
        ++wave;
        waveBegin = begins[node];
      }
      needs[node] = wave;
      for (int64_t chunk :
           {getSender(*transfer, edges), getReceiver(*transfer, edges)}) {
        int64_t rank = schedule.placement.rankOfChunk[chunk];
        if (waveOfGroup[rank] != wave)
          posting.ranks[rank].emplace_back();
        waveOfGroup[rank] = wave;
        posting.ranks[rank].back().push_back(*transfer);
      }
    }
    for (auto [waiter, isForValue] : execution.getWaiters(node))
      needs[waiter] = std::max(needs[waiter], needs[node]);
  }
  // In one order on both sides, whatever rounding has made of their times.
  for (auto &groups : posting.ranks)
    for (Group &group : groups)
      llvm::sort(group, [](const Transfer &one, const Transfer &two) {
        return std::tie(one.edge, one.gradient, one.microBatch) <
               std::tie(two.edge, two.gradient, two.microBatch);
      });
  return posting;
}
