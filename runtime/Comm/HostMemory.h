// The memory through which the ranks of one machine exchange data: barriers of
// groups, mailboxes, and the shared arenas. One anonymous mapping made before
// the ranks are forked: it has no name, so nothing of it can be left behind.

#ifndef ACCEL_RUNTIME_COMM_HOSTMEMORY_H
#define ACCEL_RUNTIME_COMM_HOSTMEMORY_H

#include "Control/SharedControl.h"
#include "Format/Layout.h"

namespace accel::rt {

/// A message on its way from one rank to another.
struct alignas(64) Letter {
  enum State : uint32_t { Free, Writing, Posted, Taken };
  std::atomic<uint32_t> state{Free};
  int64_t tag = 0;
  uint64_t offset = 0; ///< Of the first element in the shared arenas.
  int64_t strides[kMaxRank] = {};
};

/// The letters between one ordered pair of ranks. `posted` and `taken` count.
struct alignas(64) Mailbox {
  static constexpr int kLetters = 16;
  Word posted{0}, taken{0};
  Letter letters[kLetters];
};

/// Barriers are told apart by axes and stream: two streams may be in
/// collectives of the same ranks at once.
struct Channel {
  std::vector<std::string> axes;
  std::string stream;
};

class HostMemory {
public:
  ~HostMemory();
  HostMemory() = default;
  HostMemory(const HostMemory &) = delete;
  HostMemory &operator=(const HostMemory &) = delete;

  /// Maps what `executable` needs, the arenas unless told not to.
  Status create(const Executable &executable, bool withArenas = true);

  /// The barrier of the group that `channel` and the group's lowest rank name.
  BarrierCell &barrier(size_t channel, int64_t lowestRank) {
    return barriers[channel * static_cast<size_t>(ranks) +
                    static_cast<size_t>(lowestRank)];
  }
  /// The index of a channel.
  size_t channel(const Channel &wanted) const;
  Mailbox &mailbox(int64_t from, int64_t to) {
    return mailboxes[from * ranks + to];
  }
  /// A rank's piece of the shared arena, `sharedBytes` long.
  char *shared(int64_t rank) { return arenas + rank * sharedStride; }
  uint64_t sharedBytes() const { return bytesOfArena; }
  /// The start of all pieces: letters count offsets from it.
  char *sharedBase() { return arenas; }
  int64_t numRanks() const { return ranks; }

private:
  int64_t ranks = 1;
  std::vector<Channel> channels;
  void *mapping = nullptr;
  uint64_t mappedBytes = 0;
  BarrierCell *barriers = nullptr;
  Mailbox *mailboxes = nullptr;
  char *arenas = nullptr;
  int64_t sharedStride = 0;
  uint64_t bytesOfArena = 0;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_COMM_HOSTMEMORY_H
