// What the arena `nvme` is made of: a file in a folder of the machine that
// runs, moved in blocks of which several are under way at once. An attribute of
// the arena, from `plan-allocate-buffers` to the executable.

#ifndef ACCEL_DIALECTS_PLAN_STORAGE_H
#define ACCEL_DIALECTS_PLAN_STORAGE_H

#include "dialects/Plan/Plan.h"

namespace accel::plan {

inline constexpr llvm::StringLiteral kStorageAttr = "plan.storage";
/// What a file is read and written in where the cache of pages is passed by
/// (O_DIRECT), so that the places of its buffers are multiples of it.
inline constexpr int64_t kStorageSector = 4096;

struct Storage {
  llvm::StringRef path; ///< a folder
  int64_t blockSize = 0, queueDepth = 0;

  /// Bytes that the host stages: as many blocks as are under way, and one of
  /// rows that lie apart.
  int64_t getStagedBytes() const { return blockSize * (queueDepth + 1); }
  /// Writes it to the arena.
  void attach(ArenaOp arena) const;
  /// That of an arena of space nvme. Emits an error where it is missing, or
  /// says what no run can do.
  static mlir::FailureOr<Storage> read(ArenaOp arena);
};

} // namespace accel::plan

#endif // ACCEL_DIALECTS_PLAN_STORAGE_H
