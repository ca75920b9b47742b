// Counts slots from the order in which tasks fill and empty them.

#include "Slots.h"
#include "llvm/ADT/STLExtras.h"

using namespace accel::pipeline;

llvm::StringRef accel::pipeline::toString(SlotKind kind) {
  static constexpr llvm::StringLiteral names[kSlotKinds] = {
      "activations",       "activations for weights", "gradients for weights",
      "received values",   "received gradients",      "values to send",
      "gradients to send",
  };
  return names[static_cast<size_t>(kind)];
}

SlotUse accel::pipeline::getSlotUse(SlotKind kind, TaskKind task) {
  bool ends = makesInputGradient(task);
  bool endsWeights =
      task == TaskKind::Backward || task == TaskKind::BackwardWeight;
  switch (kind) {
  case SlotKind::Activation:
    return {task == TaskKind::Forward, ends};
  case SlotKind::WeightActivation:
    return {task == TaskKind::Forward, endsWeights};
  case SlotKind::WeightGradient:
    return {task == TaskKind::BackwardInput, task == TaskKind::BackwardWeight};
  case SlotKind::ReceivedValue:
    return {false, task == TaskKind::Forward};
  case SlotKind::ReceivedGradient:
    return {false, ends};
  case SlotKind::SentValue:
    return {task == TaskKind::Forward, false};
  case SlotKind::SentGradient:
    return {ends, false};
  }
  llvm_unreachable("all kinds are listed");
}

/// The fewest slots of the kind with which no two micro-batches of the chunk
/// meet in one; `tasks` are the chunk's.
static int64_t countSlots(llvm::ArrayRef<Task> tasks, SlotKind kind,
                          int64_t microBatches) {
  for (int64_t slots = 1; slots < microBatches; ++slots) {
    std::vector<bool> taken(slots);
    bool fits = llvm::all_of(tasks, [&](const Task &task) {
      SlotUse use = getSlotUse(kind, task.kind);
      auto slot = taken[task.microBatch % slots];
      if (use.writes && slot)
        return false;
      if (use.writes || use.frees)
        slot = use.writes;
      return true;
    });
    if (fits)
      return slots;
  }
  return microBatches;
}

Slots accel::pipeline::countSlots(const Schedule &schedule,
                                  int64_t ofTransfers) {
  Slots slots(schedule.placement.countChunks());
  std::vector<std::vector<Task>> ofChunk(slots.countChunks());
  for (const auto &tasks : schedule.ranks)
    for (const Task &task : tasks)
      ofChunk[task.chunk].push_back(task);
  for (int64_t chunk = 0; chunk < slots.countChunks(); ++chunk)
    for (size_t kind = 0; kind < kSlotKinds; ++kind)
      slots.at(chunk, SlotKind(kind)) =
          kind < kKeptKinds ? ::countSlots(ofChunk[chunk], SlotKind(kind),
                                           schedule.microBatches)
                            : std::min(ofTransfers, schedule.microBatches);
  return slots;
}

std::vector<int64_t>
accel::pipeline::countLiveActivations(const Schedule &schedule) {
  std::vector<int64_t> peaks;
  for (const auto &tasks : schedule.ranks) {
    int64_t live = 0, peak = 0;
    for (const Task &task : tasks) {
      SlotUse use = getSlotUse(SlotKind::WeightActivation, task.kind);
      peak = std::max(peak, live += use.writes);
      live -= use.frees;
    }
    peaks.push_back(peak);
  }
  return peaks;
}
