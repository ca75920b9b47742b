// The memory through which the ranks of one machine exchange data: barriers of
// groups, mailboxes, and the shared arenas; where there are other machines, the
// wires to them and their staging, too. A mapping without a name, made before
// the ranks are forked, so that nothing of it can be left behind.

#ifndef ACCEL_RUNTIME_COMM_HOSTMEMORY_H
#define ACCEL_RUNTIME_COMM_HOSTMEMORY_H

#include "Comm/Staging.h"
#include "Control/SharedControl.h"
#include "Format/Layout.h"
#include "Network/Machines.h"

#include <chrono>

namespace accel::rt {

/// A message on its way from one rank to another.
struct alignas(64) Letter {
  enum State : uint32_t { Free, Writing, Posted, Taken };
  std::atomic<uint32_t> state{Free};
  int64_t tag = 0;
  uint64_t offset = 0; ///< Of the first element in the shared arenas.
  int64_t strides[kMaxRank] = {};
};

/// What counts the letters between one ordered pair of ranks.
struct alignas(64) Mailbox {
  Word posted{0}, taken{0};
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

  /// Maps what `executable` needs, the arenas unless told not to. With
  /// `machines` all processes do so together, and each has those of its own.
  Status create(const Executable &executable, bool withArenas = true,
                Machines *machines = nullptr);

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
  /// The letters between a pair, `numLetters` of them: as many as all streams
  /// of a rank may have posted to another one at once, so that none waits for
  /// what another stream has to receive first.
  Letter *letters(int64_t from, int64_t to) {
    return allLetters +
           static_cast<uint64_t>(from * ranks + to) * lettersOfPair;
  }
  size_t numLetters() const { return lettersOfPair; }
  /// Whether a rank is one of this machine's. All but the barriers is for
  /// those.
  bool isHere(int64_t rank) const { return slot(rank) >= 0; }
  int64_t machineOf(int64_t rank) const {
    return machineNumbers.empty() ? 0
                                  : machineNumbers[static_cast<size_t>(rank)];
  }
  /// A rank's piece of the shared arena, `sharedBytes` long.
  char *shared(int64_t rank) { return arenas + slot(rank) * sharedStride; }
  uint64_t sharedBytes() const { return bytesOfArena; }
  /// The start of all pieces: letters count offsets from it.
  char *sharedBase() { return arenas; }
  int64_t numRanks() const { return ranks; }

  /// The streams that may have something for other machines; none where there
  /// are no others. Each rank has a wire for each, one after another, with
  /// staging of its own.
  const std::vector<std::string> &streams() const { return wired; }
  Wire *wires(int64_t rank) {
    return allWires + static_cast<size_t>(slot(rank)) * wired.size();
  }
  Staging &staging(int64_t rank, size_t stream) {
    return allStaging[static_cast<size_t>(slot(rank)) * wired.size() + stream];
  }
  /// The first byte of the staging's slots.
  char *stagingSlots(int64_t rank, size_t stream) {
    return slots + (static_cast<size_t>(slot(rank)) * wired.size() + stream) *
                       Staging::kBytes;
  }
  /// What a rank has of it, beside the plan.
  uint64_t stagingBytes() const { return wired.size() * Staging::kBytes; }
  /// Offsets of wires count from here.
  char *base() { return static_cast<char *>(mapping); }
  bool contains(const char *data) const {
    const char *start = static_cast<const char *>(mapping);
    return data >= start && data < start + mappedBytes;
  }
  /// When data of each rank of another machine came last: ticks of the steady
  /// clock. For who watches whether that machine lives.
  std::atomic<int64_t> *dataTimes() { return heardAt; }
  void noteData(int64_t from) {
    heardAt[from].store(
        std::chrono::steady_clock::now().time_since_epoch().count(),
        std::memory_order_relaxed);
  }

private:
  /// A rank's place among those of this machine; -1: it is of another.
  int64_t slot(int64_t rank) const {
    return slotOf.empty() ? rank : slotOf[static_cast<size_t>(rank)];
  }

  int64_t ranks = 1;
  std::vector<int64_t> slotOf;         ///< Empty: all are here.
  std::vector<int64_t> machineNumbers; ///< Empty: there is one.
  std::vector<std::string> wired;
  Wire *allWires = nullptr;
  Staging *allStaging = nullptr;
  char *slots = nullptr;
  std::vector<Channel> channels;
  void *mapping = nullptr;
  uint64_t mappedBytes = 0;
  std::atomic<int64_t> *heardAt = nullptr;
  BarrierCell *barriers = nullptr;
  Mailbox *mailboxes = nullptr;
  Letter *allLetters = nullptr;
  size_t lettersOfPair = 0;
  char *arenas = nullptr;
  int64_t sharedStride = 0;
  uint64_t bytesOfArena = 0;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_COMM_HOSTMEMORY_H
