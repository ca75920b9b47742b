// Blocks of a file on their way, several at once: by io_uring, or one after
// another where the kernel grants no ring (seccomp, an old kernel).

#ifndef ACCEL_RUNTIME_STORAGE_BLOCKQUEUE_H
#define ACCEL_RUNTIME_STORAGE_BLOCKQUEUE_H

#include "accel-rt/Status.h"

#include <cstdint>
#include <memory>

namespace accel::rt {

/// Bytes that follow each other in the file and in memory.
struct Block {
  uint64_t offset = 0, bytes = 0;
  char *memory = nullptr;
};

class BlockQueue {
public:
  virtual ~BlockQueue() = default;

  /// Begins to move a block; `number` comes back with it. No more than `depth`
  /// are under way, and the memory stays until next() has told of it. Errors:
  /// the ring takes none.
  virtual Status begin(const Block &block, bool writes, size_t number) = 0;
  /// Waits for one of those under way: its number, and the bytes that were
  /// moved or, negative, the number of an error. Errors: none ever comes.
  virtual Status next(size_t &number, int64_t &result) = 0;

  /// A ring for a file that outlives it. Errors: the kernel grants none.
  static Status makeRing(int file, size_t depth,
                         std::unique_ptr<BlockQueue> &queue);
  /// By pread and pwrite, each done when begin() returns.
  static std::unique_ptr<BlockQueue> makePlain(int file, size_t depth);
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_STORAGE_BLOCKQUEUE_H
