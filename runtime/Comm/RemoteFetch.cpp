// In rounds: in round s a rank serves the one s places behind it in the group
// and is served by the one s places before. Whoever is in the earliest round
// waits for nobody who is not in it, or beyond it.

#include "Comm/RemoteFetch.h"

#include "Comm/RemoteTask.h"

#include <algorithm>
#include <cstring>
#include <sched.h>

namespace accel::rt {

RemoteFetch::RemoteFetch(const FetchedRows &shape, const Group &group,
                         size_t stream, HostRank &self)
    : shape(shape), group(group), stream(stream), self(self),
      carrier(*self.carriers[stream]), theirs(static_cast<size_t>(shape.rows)) {
  given.reserve(theirs.size());
  taken.reserve(theirs.size());
}

Status RemoteFetch::connect() {
  for (int64_t peer : group.ranks)
    if (!self.memory.isHere(peer))
      for (bool sends : {true, false})
        ACCEL_RT_RETURN_IF_ERROR(carrier.connect(sends, Staging::Out, peer));
  return Status();
}

void RemoteFetch::list(const int64_t *index, int64_t place,
                       std::vector<int64_t> &found) const {
  found.clear();
  for (int64_t row = 0; row < shape.rows; ++row)
    if (index[row] >= place * shape.peerRows &&
        index[row] < (place + 1) * shape.peerRows)
      found.push_back(row);
}

/// Calls f(row of the index, byte in it, place in the slot, bytes) for the
/// bytes from `at` on of the listed rows, one after another.
template <class F>
void RemoteFetch::forPieces(const std::vector<int64_t> &list, uint64_t at,
                            uint64_t bytes, F &&f) const {
  uint64_t size = static_cast<uint64_t>(shape.rowBytes);
  for (uint64_t done = 0; done < bytes;) {
    uint64_t inRow = (at + done) % size,
             count = std::min(size - inRow, bytes - done);
    f(list[(at + done) / size], inRow, done, count);
    done += count;
  }
}

char *RemoteFetch::slot(Staging::Ring ring, uint64_t number) {
  return self.memory.stagingSlots(self.rank, stream) +
         (static_cast<uint64_t>(ring) * Staging::kSlots +
          number % Staging::kSlots) *
             Staging::kSlotBytes;
}

template <class Fill, class Keep>
Status RemoteFetch::exchange(const Flow<Fill> &to, const Flow<Keep> &from,
                             bool isIndex) {
  constexpr uint64_t most = Staging::kSlotBytes, slots = Staging::kSlots;
  auto chunks = [](uint64_t bytes) { return (bytes + most - 1) / most; };
  auto sizeOf = [&](uint64_t bytes, uint64_t chunk) {
    return std::min(most, bytes - chunk * most);
  };
  // Requests are numbered by their slots: what leaves, then what comes.
  auto numberOf = [](bool sends, uint64_t chunk) {
    return static_cast<int>(chunk % slots + (sends ? 0 : slots));
  };
  RankControl &signs = self.control.self();
  Word &bell = self.memory.wires(self.rank)[stream].bell;
  uint64_t begun = 0, left = 0, posted = 0, kept = 0;
  for (int look = 0; left < chunks(to.bytes) || kept < chunks(from.bytes);) {
    uint32_t seen = bell.load();
    bool moved = false;
    ACCEL_RT_RETURN_IF_ERROR(carrier.goOn(moved));
    for (; posted < std::min(chunks(from.bytes), kept + slots); ++posted)
      carrier.begin(numberOf(false, posted),
                    {/*sends=*/false, Staging::Out, from.peer,
                     chunkTag(stream, posted, isIndex),
                     slot(Staging::In, posted), sizeOf(from.bytes, posted)});
    for (; begun < std::min(chunks(to.bytes), left + slots); ++begun) {
      char *data = slot(Staging::Out, begun);
      to.move(begun * most, sizeOf(to.bytes, begun), data);
      carrier.begin(numberOf(true, begun),
                    {/*sends=*/true, Staging::Out, to.peer,
                     chunkTag(stream, begun, isIndex), data,
                     sizeOf(to.bytes, begun)});
    }
    for (; left < begun && carrier.finish(numberOf(true, left)); ++left)
      moved = true;
    for (; kept < posted && carrier.finish(numberOf(false, kept)); ++kept) {
      from.move(kept * most, sizeOf(from.bytes, kept), slot(Staging::In, kept));
      moved = true;
    }
    if (moved) {
      signs.progress.fetch_add(1, std::memory_order_relaxed);
      look = 0;
    } else if (++look < self.spin) {
      sched_yield();
    } else {
      if (self.control.isAborted())
        return Status::error(kAbortedMessage);
      signs.waiting.store(true, std::memory_order_relaxed);
      ACCEL_RT_RETURN_IF_ERROR(carrier.wait(seen, /*isRung=*/false));
    }
  }
  signs.waiting.store(false, std::memory_order_relaxed);
  return Status();
}

Status RemoteFetch::run(const char *input, char *output,
                        const int64_t *wanted) {
  int64_t members = static_cast<int64_t>(group.ranks.size());
  uint64_t rowBytes = static_cast<uint64_t>(shape.rowBytes),
           indexBytes = theirs.size() * sizeof(int64_t);
  for (int64_t round = 1; round < members; ++round) {
    int64_t reader = (group.index + round) % members,
            owner = (group.index + members - round) % members;
    int64_t to = group.ranks[static_cast<size_t>(reader)],
            from = group.ranks[static_cast<size_t>(owner)];
    bool serves = !self.memory.isHere(to), takes = !self.memory.isHere(from);
    ACCEL_RT_RETURN_IF_ERROR(exchange(
        Flow{from, takes ? indexBytes : 0,
             [&](uint64_t at, uint64_t bytes, char *slot) {
               std::memcpy(slot, reinterpret_cast<const char *>(wanted) + at,
                           bytes);
             }},
        Flow{to, serves ? indexBytes : 0,
             [&](uint64_t at, uint64_t bytes, char *slot) {
               std::memcpy(reinterpret_cast<char *>(theirs.data()) + at, slot,
                           bytes);
             }},
        /*isIndex=*/true));
    given.clear();
    taken.clear();
    if (serves)
      list(theirs.data(), group.index, given);
    if (takes)
      list(wanted, owner, taken);
    ACCEL_RT_RETURN_IF_ERROR(exchange(
        Flow{to, given.size() * rowBytes,
             [&](uint64_t at, uint64_t bytes, char *slot) {
               forPieces(given, at, bytes,
                         [&](int64_t row, uint64_t in, uint64_t place,
                             uint64_t count) {
                           int64_t mine = theirs[static_cast<size_t>(row)] -
                                          group.index * shape.peerRows;
                           std::memcpy(slot + place,
                                       input + mine * shape.inputStep + in,
                                       count);
                         });
             }},
        Flow{from, taken.size() * rowBytes,
             [&](uint64_t at, uint64_t bytes, char *slot) {
               forPieces(taken, at, bytes,
                         [&](int64_t row, uint64_t in, uint64_t place,
                             uint64_t count) {
                           std::memcpy(output + row * shape.outputStep + in,
                                       slot + place, count);
                         });
             }},
        /*isIndex=*/false));
  }
  return Status();
}

} // namespace accel::rt
