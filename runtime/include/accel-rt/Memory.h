// The memory of a device, as the host may use it: arenas, places in them, and
// copies. Nothing else of the host reads or writes there, so that it may lie
// where the host cannot reach.

#ifndef ACCEL_RT_MEMORY_H
#define ACCEL_RT_MEMORY_H

#include "accel-rt/PlanFormat.h"

namespace accel::rt {

/// A place in an arena. What the number means its device alone knows.
struct Address {
  uint64_t value = 0;

  Address operator+(int64_t bytes) const {
    return {value + static_cast<uint64_t>(bytes)};
  }
  int64_t operator-(Address other) const {
    return static_cast<int64_t>(value - other.value);
  }
};

/// Rows of `bytes` bytes each, and how far they begin from each other in an
/// arena and on the host: 0 there says one row again and again.
struct Rows {
  uint64_t bytes = 0;
  int64_t count = 1, inArena = 0, onHost = 0;

  /// `count` elements of `bytes` bytes, at strides in elements.
  static Rows ofElements(int64_t bytes, int64_t count, int64_t arenaStride,
                         int64_t hostStride) {
    if (arenaStride == 1 && hostStride == 1)
      return {static_cast<uint64_t>(count * bytes)};
    return {static_cast<uint64_t>(bytes), count, arenaStride * bytes,
            hostStride * bytes};
  }
};

class Memory {
public:
  virtual ~Memory() = default;

  /// Allocates an arena of exactly `arena.bytes` bytes, aligned as it says; it
  /// is freed with the device.
  virtual Status allocate(const ArenaPlan &arena, Address &address) = 0;
  /// Bytes that allocate() has handed out.
  virtual uint64_t allocatedBytes() const = 0;
  /// Makes memory of the host's (which ranks share) an arena, too: commands may
  /// name it until the device ends, and the host goes on using it.
  virtual Status share(void *host, uint64_t bytes, Address &address) = 0;

  /// Copies, done when they return. No command that touches the same bytes may
  /// be under way; a HostTask calls them for its own views, in its stream's
  /// order, and others when all streams have been joined.
  virtual Status upload(Address target, const void *source,
                        const Rows &rows) = 0;
  virtual Status download(void *target, Address source, const Rows &rows) = 0;
  /// Sets every byte of the rows to `byte`.
  virtual Status fill(Address target, int byte, const Rows &rows) = 0;

  /// Whether the arena that an address is in is memory of the host's, and its
  /// number a pointer, so that what is moved may be moved in place: a device
  /// may have some arenas there (`pinned`, `host`) and others not. Nobody may
  /// rely on it: without it everything goes by the copies above.
  virtual bool isHostMemory(Address) const { return false; }
  /// Null where it is not.
  char *find(Address address) const {
    return isHostMemory(address) ? reinterpret_cast<char *>(address.value)
                                 : nullptr;
  }
  /// By what bytes at an address are moved: null where they are the host's own.
  Memory *ifRemote(Address address) {
    return isHostMemory(address) ? nullptr : this;
  }
};

} // namespace accel::rt

#endif // ACCEL_RT_MEMORY_H
