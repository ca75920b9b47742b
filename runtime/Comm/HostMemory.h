// The memory that the ranks of one machine share: control, barriers, mailboxes,
// and the shared arenas. One anonymous mapping made before the ranks are
// forked: it has no name, so nothing of it can be left behind.

#ifndef ACCEL_RUNTIME_COMM_HOSTMEMORY_H
#define ACCEL_RUNTIME_COMM_HOSTMEMORY_H

#include "Control/Control.h"
#include "Format/Layout.h"

namespace accel::rt {

/// A barrier of one group of ranks. All zero at the start.
struct alignas(64) BarrierCell {
  Word arrived{0}, generation{0};
};

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

  /// Maps what `executable` needs, the arenas unless told not to; `repeats`
  /// times are kept for every rank.
  Status create(const Executable &executable, int64_t repeats,
                bool withArenas = true);

  Control &control() { return *controlBlock; }
  RankControl &rank(int64_t rank) { return rankBlocks[rank]; }
  double &seconds(int64_t rank, int64_t repeat) {
    return times[rank * repeats + repeat];
  }
  /// What rank 0 saw of a training step, counted from 0 in this run.
  StepRecord &step(int64_t repeat) { return steps[repeat]; }
  /// What a checkpoint's file holds of a state, by Executable::states' order.
  uint64_t &stateHash(size_t state) { return hashes[state]; }
  /// What a rank's piece of a state's value must hash to, by the same order.
  uint64_t &pieceHash(int64_t rank, size_t state) {
    return pieceHashes[static_cast<size_t>(rank) * states + state];
  }
  /// The barrier of the group that `channel` and the group's lowest rank name.
  BarrierCell &barrier(size_t channel, int64_t lowestRank) {
    return barriers[channel * static_cast<size_t>(ranks) +
                    static_cast<size_t>(lowestRank)];
  }
  /// The index of a channel; the channel of all ranks is 0.
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
  int64_t ranks = 1, repeats = 0;
  std::vector<Channel> channels;
  void *mapping = nullptr;
  uint64_t mappedBytes = 0;
  Control *controlBlock = nullptr;
  RankControl *rankBlocks = nullptr;
  double *times = nullptr;
  StepRecord *steps = nullptr;
  size_t states = 0;
  uint64_t *hashes = nullptr, *pieceHashes = nullptr;
  BarrierCell *barriers = nullptr;
  Mailbox *mailboxes = nullptr;
  char *arenas = nullptr;
  int64_t sharedStride = 0;
  uint64_t bytesOfArena = 0;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_COMM_HOSTMEMORY_H
