// Counts slots from the order in which tasks fill and empty them.

#include "Slots.h"
#include "llvm/ADT/STLExtras.h"

#include <map>
#include <tuple>

using namespace accel::pipeline;

llvm::StringRef accel::pipeline::toString(SlotKind kind) {
  static constexpr llvm::StringLiteral names[kSlotKinds] = {
      "activations",        "activations for weights", "gradients for weights",
      "values passed on",   "gradients passed on",     "received values",
      "received gradients", "values to send",          "gradients to send",
  };
  return names[static_cast<size_t>(kind)];
}

llvm::SmallVector<SlotUse>
accel::pipeline::listSlotUses(const Task &task, const Placement &placement,
                              llvm::ArrayRef<Edge> edges) {
  llvm::SmallVector<SlotUse> uses;
  auto add = [&](SlotKind kind, bool writes) {
    uses.push_back({task.chunk, kind, 0, writes});
  };
  bool isForward = task.kind == TaskKind::Forward;
  bool isWeight = task.kind == TaskKind::BackwardWeight;
  if (!isWeight)
    add(SlotKind::Activation, isForward);
  if (task.kind != TaskKind::BackwardInput)
    add(SlotKind::WeightActivation, isForward);
  if (isWeight || task.kind == TaskKind::BackwardInput)
    add(SlotKind::WeightGradient, !isWeight);
  for (size_t number = 0; number < edges.size() && !isWeight; ++number) {
    const Edge &edge = edges[number];
    if (placement.rankOfChunk[edge.source] !=
        placement.rankOfChunk[edge.target])
      continue;
    int64_t writer = isForward ? edge.source : edge.target;
    int64_t reader = isForward ? edge.target : edge.source;
    if (task.chunk == writer || task.chunk == reader)
      uses.push_back(
          {writer, isForward ? SlotKind::PassedValue : SlotKind::PassedGradient,
           number, task.chunk == writer});
  }
  return uses;
}

namespace {
/// A slot is filled, or emptied, for a micro-batch.
struct SlotEvent {
  int64_t microBatch;
  bool writes;
};
} // namespace

/// The fewest slots with which no two micro-batches meet in one.
static int64_t countSlots(llvm::ArrayRef<SlotEvent> events,
                          int64_t microBatches) {
  for (int64_t slots = 1; slots < microBatches; ++slots) {
    std::vector<bool> taken(slots);
    bool fits = llvm::all_of(events, [&](const SlotEvent &event) {
      auto slot = taken[event.microBatch % slots];
      if (event.writes && slot)
        return false;
      slot = event.writes;
      return true;
    });
    if (fits)
      return slots;
  }
  return microBatches;
}

Slots accel::pipeline::countSlots(const Schedule &schedule,
                                  llvm::ArrayRef<Edge> edges,
                                  int64_t ofTransfers) {
  Slots slots(schedule.placement.countChunks());
  std::map<std::tuple<int64_t, SlotKind, size_t>, std::vector<SlotEvent>>
      events;
  for (const auto &tasks : schedule.ranks)
    for (const Task &task : tasks)
      for (SlotUse use : listSlotUses(task, schedule.placement, edges))
        events[{use.chunk, use.kind, use.edge}].push_back(
            {task.microBatch, use.writes});
  for (int64_t chunk = 0; chunk < slots.countChunks(); ++chunk)
    for (size_t kind = 0; kind < kSlotKinds; ++kind)
      slots.at(chunk, SlotKind(kind)) =
          SlotKind(kind) < SlotKind::ReceivedValue
              ? 1
              : std::min(ofTransfers, schedule.microBatches);
  for (const auto &[key, list] : events) {
    int64_t &count = slots.at(std::get<0>(key), std::get<1>(key));
    count = std::max(count, ::countSlots(list, schedule.microBatches));
  }
  return slots;
}

std::vector<int64_t>
accel::pipeline::countLiveActivations(const Schedule &schedule) {
  std::vector<int64_t> peaks;
  for (const auto &tasks : schedule.ranks) {
    int64_t live = 0, peak = 0;
    for (const Task &task : tasks) {
      live += task.kind == TaskKind::Forward;
      peak = std::max(peak, live);
      live -= task.kind == TaskKind::Backward ||
              task.kind == TaskKind::BackwardWeight;
    }
    peaks.push_back(peak);
  }
  return peaks;
}
