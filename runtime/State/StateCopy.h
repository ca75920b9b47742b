// A copy of the states that a rank saves, in memory of the host: steps go on
// while it is written. Made when loading, so that a run without room for it
// ends before its first step.

#ifndef ACCEL_RUNTIME_STATE_STATECOPY_H
#define ACCEL_RUNTIME_STATE_STATECOPY_H

#include "accel-rt/Memory.h"

#include <atomic>
#include <vector>

namespace accel::rt {

class ThreadPool;

class StateCopy {
public:
  StateCopy() = default;
  ~StateCopy();
  StateCopy(const StateCopy &) = delete;
  StateCopy &operator=(const StateCopy &) = delete;

  /// Adds what a view covers, from its first element at `start` to its last.
  /// Views may overlap: bytes are copied once.
  void add(Address start, const View &view);
  /// Takes the memory; `counter` as in populate(). Errors: there is none.
  Status allocate(std::atomic<uint64_t> *counter);
  uint64_t bytes() const { return total; }

  /// Copies all that was added. No command may be under way. Errors: those of
  /// the device.
  Status copy(Memory &memory, ThreadPool &pool);
  /// Where the copy of what lies at `address` is. Requires that it was added,
  /// and allocate().
  const char *find(Address address) const;

private:
  /// Bytes that follow each other there, and here.
  struct Span {
    Address start;
    uint64_t bytes = 0, at = 0;
  };
  std::vector<Span> spans;  ///< By their starts; apart, once allocated.
  std::vector<Span> chunks; ///< The same, in parts that threads take.
  uint64_t total = 0;
  char *room = nullptr;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_STATE_STATECOPY_H
