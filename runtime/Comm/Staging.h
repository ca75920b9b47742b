// Where bytes wait that come from or go to other machines: slots in the memory
// of the machine, in three rings for each stream of a rank. They are all the
// memory that communication between machines has: made once, whatever the size
// of what moves, which goes through in chunks.
//
// Slots are taken in the order of the chunks, in each ring for itself, and a
// chunk needs nothing of a later one: the first that is not done has all its
// slots, so that no set of ranks can wait for each other in a circle.

#ifndef ACCEL_RUNTIME_COMM_STAGING_H
#define ACCEL_RUNTIME_COMM_STAGING_H

#include "Network/Wire.h"

namespace accel::rt {

/// A slot that other ranks of the machine may read.
struct alignas(64) StagingSlot {
  /// The number of the chunk that is there, + 1; and how many still read it.
  Word ready{0}, readers{0};
};

/// All zero at the start.
struct Staging {
  /// What leaves as it is, what leaves combined with what came, what came.
  enum Ring { Out, Combined, In, kRings };
  static constexpr int64_t kSlots = 4, kSlotBytes = 256 << 10;
  static constexpr uint64_t kBytes = uint64_t(kRings) * kSlots * kSlotBytes;

  StagingSlot slots[kRings][kSlots];
  /// The number of the first chunk of the collective at hand, in each ring.
  std::atomic<uint64_t> first[kRings];
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_COMM_STAGING_H
