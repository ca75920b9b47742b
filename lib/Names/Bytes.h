// Numbers of bytes as people read and write them.

#ifndef ACCEL_LIB_NAMES_BYTES_H
#define ACCEL_LIB_NAMES_BYTES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace accel {

/// "12.3 MiB (12897485)"; exact below 1 KiB.
std::string formatBytes(int64_t bytes);

/// How much memory a rank may take, as `--memory-budget` says it: bytes, or a
/// part of what a rank has.
struct MemoryBudget {
  int64_t bytes = 0;
  double percent = 0; ///< above 0: of what a rank has, in the place of bytes

  /// `12884901888`, `12GiB` (KiB, MiB, GiB, TiB, or K, M, G, T), `12GB` (powers
  /// of ten), `80%`; numbers may have a fraction. Errors: another text, nothing
  /// or less, more than 100 %.
  static llvm::Expected<MemoryBudget> parse(llvm::StringRef text);

  /// In bytes, of ranks of which each has `memory`.
  int64_t resolve(int64_t memory) const;
};

/// The bytes of memory of this machine, or of the control group that this
/// process is in, if that has less.
int64_t getMachineMemory();

} // namespace accel

#endif // ACCEL_LIB_NAMES_BYTES_H
