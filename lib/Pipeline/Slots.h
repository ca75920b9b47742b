// How many copies of its buffers each chunk has: a slot keeps what one
// micro-batch leaves for later.

#ifndef ACCEL_LIB_PIPELINE_SLOTS_H
#define ACCEL_LIB_PIPELINE_SLOTS_H

#include "Schedule.h"
#include <array>

namespace accel::pipeline {

/// What a chunk keeps of a micro-batch, by when it is written and read last.
enum class SlotKind {
  Activation,       ///< Forward to input gradient (or whole backward).
  WeightActivation, ///< Forward to weight gradient (or whole backward).
  WeightGradient,   ///< Input gradient to weight gradient.
  PassedValue,      ///< Of each edge out of the chunk to one of its own rank:
                    ///< forward to forward.
  PassedGradient,   ///< Of each such edge into it: input gradient to the other.
  ReceivedValue,    ///< Of each edge into the chunk: receive to forward.
  ReceivedGradient, ///< Of each edge out of it: receive to input gradient.
  SentValue,        ///< Forward to the end of the sends of its values.
  SentGradient, ///< Input gradient to the end of the sends of its gradients.
};
inline constexpr size_t kSlotKinds = 9;

/// "activations", and so on, for messages.
llvm::StringRef toString(SlotKind kind);

/// How many slots each chunk has of each kind. Micro-batch m has slot
/// m mod slots: no task, view or run names one (docs/Contracts.md).
class Slots {
public:
  /// None yet.
  explicit Slots(int64_t chunks) : counts(chunks) {
    for (auto &ofKind : counts)
      ofKind.fill(0);
  }
  int64_t &at(int64_t chunk, SlotKind kind) {
    return counts[chunk][static_cast<size_t>(kind)];
  }
  int64_t at(int64_t chunk, SlotKind kind) const {
    return counts[chunk][static_cast<size_t>(kind)];
  }
  int64_t countChunks() const { return counts.size(); }

private:
  std::vector<std::array<int64_t, kSlotKinds>> counts;
};

/// What a task does to slots that a rank's tasks alone write and read (the
/// first five kinds): it fills the slot of its micro-batch, or leaves it empty.
struct SlotUse {
  int64_t chunk; ///< Whose count of slots it is.
  SlotKind kind;
  size_t edge; ///< Of what is passed; 0 of other kinds.
  bool writes;
};
llvm::SmallVector<SlotUse> listSlotUses(const Task &task,
                                        const Placement &placement,
                                        llvm::ArrayRef<Edge> edges);

/// As few slots as the order of each rank's tasks can do with, at least one,
/// and `ofTransfers` of what is received and sent: with 2, one is read while
/// the next arrives. Requires each task once and after what it needs.
Slots countSlots(const Schedule &schedule, llvm::ArrayRef<Edge> edges,
                 int64_t ofTransfers = 2);

/// The most forwards of each rank whose backwards have not ended at the same
/// time, in chunks: what papers call activation memory.
std::vector<int64_t> countLiveActivations(const Schedule &schedule);

} // namespace accel::pipeline

#endif // ACCEL_LIB_PIPELINE_SLOTS_H
